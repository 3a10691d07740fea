#include "ops/mover/device_copier.h"

#include <algorithm>
#include <cstring>

#include "base/env.h"
#include "base/log.h"
#include "ops/mover/copy_orders.h"

namespace brant {
namespace {

constexpr std::size_t kTogetherBytes = std::size_t{4} << 20;  // larger copies keep a copy engine busy by themselves

CourierOptions courier_options(port::Device& device) noexcept {
  const bool cuda = device.capabilities().offers(MemoryKind::cuda);
  return CourierOptions::from_environment(cuda ? MemoryKind::cuda : MemoryKind::emulated);
}

}  // namespace

DeviceCopier::DeviceCopier(Engine& engine, CopyKernels& kernels, CopyEnd done) noexcept
    : engine_(engine),
      done_(done),
      kernels_(kernels),
      events_(engine.device()),
      lanes_{CopyLane(engine.device(), events_, done), CopyLane(engine.device(), events_, done),
             CopyLane(engine.device(), events_, done), CopyLane(engine.device(), events_, done)} {}

void DeviceCopier::open() noexcept {
  if (courier_) return;
  courier_.emplace(engine_.device(), courier_options(engine_.device()));
  sets_words_ = engine_.device().capabilities().stream_words && env_bool("BRANT_COPY_SIGNAL", false);
  kernels_.open();
}

Path DeviceCopier::start(void* to, const void* from, std::size_t bytes, DeviceCopy& copy, Path wanted) noexcept {
  copy.to = to;
  copy.from = from;
  copy.bytes = bytes;
  open();
  copy.path = wanted == Path::courier && courier_->takes(bytes) ? Path::courier : Path::copy_engine;
  engine_.pollers().attach(*this);
  if (copy.path == Path::courier && give_to_courier(copy)) return Path::courier;
  asked_.push_back(copy);
  asked_bytes_ += copy.bytes;
  if (asked_bytes_ >= kIssueBytes && !polling_) issue();
  return Path::copy_engine;
}

bool DeviceCopier::give_to_courier(DeviceCopy& copy) noexcept {
  if (carried_.empty()) static_cast<void>(courier_->poll());  // it may have left
  if (courier_->resident() && post(copy)) return true;
  const TimePoint now = Clock::now();
  if (now - std::exchange(last_small_, now) < 2 * courier_->idle_time()) call_courier_ += copy.bytes;
  ++missed_;
  return false;
}

bool DeviceCopier::post(DeviceCopy& copy) noexcept {
  if (too_much(copy, carried_bytes_)) return false;
  if (courier_->post({copy.to, copy.from, static_cast<std::uint32_t>(copy.bytes), copy.flag_value, copy.flag}) !=
      Status::ok)
    return false;
  carried_.push_back(copy);
  carried_bytes_ += copy.bytes;
  return true;
}

void DeviceCopier::call_courier() noexcept {
  if (call_courier_ == 0) return;
  if (!courier_->resident() && courier_->settled()) called_at_ = Clock::now();
  courier_->start(std::exchange(call_courier_, 0));
}

/// It has come, so it gets those that missed it.
void DeviceCopier::hand_over() noexcept {
  if (missed_ == 0 || !courier_->resident()) return;
  DeviceCopies others;
  while (DeviceCopy* copy = asked_.pop_front()) {
    if (copy->path != Path::courier || !post(*copy)) others.push_back(*copy);
  }
  while (DeviceCopy* copy = others.pop_front()) asked_.push_back(*copy);
  missed_ = 0;
}

bool DeviceCopier::worth_waiting() const noexcept {
  return missed_ >= kWindow && !courier_->settled() && Clock::now() - called_at_ < kCallPatience;
}

DeviceCopy* DeviceCopier::next_carried() noexcept {
  DeviceCopy* copy = carried_.pop_front();
  ++carried_ended_;
  carried_bytes_ -= copy->bytes;
  return copy;
}

/// One at a time: asking the driver for an event takes a microsecond.
unsigned DeviceCopier::poll_lanes() noexcept {
  for (unsigned looked = 0; looked < kLanes; ++looked) {
    CopyLane& lane = lanes_[polled_lane_++ % kLanes];
    if (!lane.empty()) return lane.poll();
  }
  return 0;
}

unsigned DeviceCopier::poll_courier() noexcept {
  if (carried_.empty() && courier_->settled()) return 0;
  static_cast<void>(courier_->poll());
  const bool usable = courier_->usable();
  unsigned ended =
      end_carried(usable ? courier_->done() : courier_->posted(), usable ? Status::ok : Status::device_failed);
  if (courier_->resident()) unclaimed_since_ = {};
  if (!carried_.empty() && !courier_->resident()) ended += take_back();
  return ended;
}

unsigned DeviceCopier::end_carried(std::uint64_t up_to, Status status) noexcept {
  unsigned ended = 0;
  for (; carried_ended_ < up_to; ++ended) {
    DeviceCopy* copy = next_carried();
    done_(*copy, status);
  }
  return ended;
}

unsigned DeviceCopier::take_back() noexcept {
  const TimePoint now = Clock::now();
  if (unclaimed_since_ == TimePoint{}) unclaimed_since_ = now;
  if (now - unclaimed_since_ < kCourierPatience) return 0;
  unclaimed_since_ = {};
  unsigned ended = 0;
  CourierOrder order;
  while (const std::uint64_t number = courier_->take_back(order)) {
    ended += end_carried(number - 1, Status::ok);
    DeviceCopy* copy = next_carried();
    copy->path = Path::copy_engine;
    asked_.push_back(*copy);
  }
  return ended;
}

void DeviceCopier::issue() noexcept {
  const bool wait = worth_waiting();
  if (!wait) missed_ = 0;
  DeviceCopies waiting;
  std::size_t waiting_bytes = 0;
  DeviceCopies batch;
  unsigned count = 0;
  const auto flush = [&] {
    if (count == 1) {
      issue_alone(*batch.pop_front());
    } else if (count > 1) {
      issue_together(batch);
    }
    count = 0;
  };
  while (DeviceCopy* copy = asked_.pop_front()) {
    if (wait && copy->path == Path::courier && !too_much(*copy, waiting_bytes)) {
      waiting.push_back(*copy);
      waiting_bytes += copy->bytes;
      continue;
    }
    copy->path = Path::copy_engine;
    if (!kernels_.take_orders() || copy->alone || copy->bytes > kTogetherBytes) {
      issue_alone(*copy);
      continue;
    }
    batch.push_back(*copy);
    if (++count == CopyOrders::kMax) flush();
  }
  flush();
  while (DeviceCopy* copy = waiting.pop_front()) asked_.push_back(*copy);
  asked_bytes_ = waiting_bytes;
}

void DeviceCopier::issue_alone(DeviceCopy& copy) noexcept {
  CopyLane& lane = next_lane();
  DeviceCopies batch;
  batch.push_back(copy);
  const Result<port::Stream*> stream = lane.stream();
  close(lane, batch, stream.ok() ? queue_alone(copy, *stream) : stream.status());
}

/// Behind its copy the word is of use; without it the owner of the copy tells the receiver.
Status DeviceCopier::queue_alone(DeviceCopy& copy, port::Stream* stream) noexcept {
  port::Streams& streams = *engine_.device().streams();
  std::uint64_t* const wanted = std::exchange(copy.flag, nullptr);
  const Status queued = streams.copy(copy.to, copy.from, copy.bytes, stream);
  if (queued != Status::ok || !sets_words_ || wanted == nullptr) return queued;
  if (streams.write_value(wanted, copy.flag_value, stream) == Status::ok) copy.flag = wanted;
  return Status::ok;
}

void DeviceCopier::issue_together(DeviceCopies& batch) noexcept {
  CopyOrders orders{};
  unsigned count = 0;
  std::size_t largest = 0;
  for (DeviceCopy* copy = batch.front(); copy != nullptr; copy = DeviceCopies::next(*copy)) {
    copy->flag = nullptr;
    orders.orders[count++] = {static_cast<std::byte*>(copy->to), static_cast<const std::byte*>(copy->from),
                              copy->bytes};
    largest = std::max(largest, copy->bytes);
  }
  CopyLane& lane = next_lane();
  const Result<port::Stream*> stream = lane.stream();
  close(lane, batch, stream.ok() ? kernels_.launch(orders, count, largest, *stream) : stream.status());
}

void DeviceCopier::close(CopyLane& lane, DeviceCopies& batch, Status issued) noexcept {
  const Status status = issued == Status::ok ? lane.close(batch) : issued;
  failed_.take(batch, status);
}

bool DeviceCopier::idle() const noexcept {
  return asked_.empty() && failed_.empty() && carried_.empty() && courier_->settled() &&
         std::all_of(lanes_.begin(), lanes_.end(), [](const CopyLane& lane) { return lane.empty(); });
}

unsigned DeviceCopier::poll() noexcept {
  polling_ = true;
  unsigned ended = failed_.tell(done_);
  ended += poll_lanes();
  ended += poll_courier();
  hand_over();
  if (missed_ >= kWindow) call_courier();
  issue();
  call_courier();  // behind the copy that called for it
  polling_ = false;
  if (idle()) engine_.pollers().detach(*this);
  return ended;
}

}  // namespace brant
