#include "ops/channel/peer_copier.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"

// Made by brant_fatbin from copy_orders.cu.
extern "C" const unsigned char channel_kernels_fatbin[];
extern "C" const std::size_t channel_kernels_fatbin_bytes;

namespace brant {
namespace {

constexpr std::size_t kTogetherBytes = std::size_t{1} << 20;  // larger copies keep a copy engine busy by themselves
constexpr unsigned kThreads = 512;
constexpr std::size_t kBytesPerBlock = kThreads * 16 * 4;
constexpr unsigned kBlocksMax = 16;  // of one order: with many orders the device is full anyway

constexpr std::array<std::size_t, 1> kArgumentBytes{sizeof(CopyOrders)};

void copy_orders_on_host(const port::HostLaunch& launch) noexcept {
  const auto orders = launch.value<CopyOrders>(0);
  for (unsigned i = 0; i < launch.shape.grid[1]; ++i) {
    const CopyOrders::Order& order = orders.orders[i];
    std::memcpy(launch.engine_address(order.to), launch.engine_address(const_cast<char*>(order.from)),
                static_cast<std::size_t>(order.bytes));
  }
}

}  // namespace

PeerCopier::PeerCopier(Engine& engine) noexcept : engine_(engine) {
  // Loaded here and not at the first copy: loading waits for running kernels.
  port::Kernels* kernels = engine.device().kernels();
  if (kernels == nullptr) return;
  const auto image = std::as_bytes(std::span(channel_kernels_fatbin, channel_kernels_fatbin_bytes));
  const Result<port::Kernel*> kernel =
      kernels->load({image, "brant_copy_orders", &copy_orders_on_host, kArgumentBytes});
  if (kernel.ok()) {
    kernel_ = *kernel;
  } else {
    log::info("no kernel for copies to peers ({}): they go one by one", status_text(kernel.status()));
  }
}

PeerCopier::~PeerCopier() {
  engine_.detach(static_cast<Poller&>(*this));
  port::Streams* streams = engine_.device().streams();
  for (Lane& lane : lanes_) {
    if (lane.stream != nullptr) streams->destroy_stream(lane.stream);
    while (StageCopy* copy = lane.copies.pop_front()) {
      if (copy->event != nullptr) events_.push_back(copy->event);
    }
  }
  for (port::Event* event : events_) streams->destroy_event(event);
}

void PeerCopier::start(void* to, const void* from, std::size_t bytes, StageCopy& copy) noexcept {
  copy.to = to;
  copy.from = from;
  copy.bytes = bytes;
  copy.event = nullptr;
  asked_.push_back(copy);
  ++under_way_;
  engine_.attach(static_cast<Poller&>(*this));
}

PeerCopier::Lane* PeerCopier::next_lane() noexcept {
  Lane& lane = lanes_[next_lane_++ % kLanes];
  if (lane.stream == nullptr) {
    const Result<port::Stream*> stream = engine_.device().streams()->create_stream();
    if (!stream) return nullptr;
    lane.stream = *stream;
  }
  return &lane;
}

void PeerCopier::issue() noexcept {
  std::array<StageCopy*, CopyOrders::kMax> batch;
  while (!asked_.empty()) {
    unsigned count = 0;
    while (StageCopy* copy = asked_.front()) {
      const bool together = kernel_ != nullptr && copy->bytes <= kTogetherBytes;
      if (!together && count != 0) break;
      asked_.remove(*copy);
      batch[count++] = copy;
      if (!together || count == batch.size()) break;
    }
    if (count == 1) {
      issue_alone(*batch[0]);
    } else {
      issue_together(batch, count);
    }
  }
}

void PeerCopier::issue_alone(StageCopy& copy) noexcept {
  Lane* lane = next_lane();
  if (lane == nullptr) return end(copy, Status::no_memory);
  const Status status = engine_.device().streams()->copy(copy.to, copy.from, copy.bytes, lane->stream);
  Copies batch;
  batch.push_back(copy);
  close_batch(*lane, batch, status);
}

void PeerCopier::issue_together(const std::array<StageCopy*, CopyOrders::kMax>& copies, unsigned count) noexcept {
  CopyOrders orders{};
  Copies batch;
  std::size_t largest = 0;
  for (unsigned i = 0; i < count; ++i) {
    StageCopy& copy = *copies[i];
    orders.orders[i] = {static_cast<char*>(copy.to), static_cast<const char*>(copy.from), copy.bytes};
    largest = std::max(largest, copy.bytes);
    batch.push_back(copy);
  }
  const auto blocks =
      static_cast<unsigned>(std::clamp<std::size_t>((largest + kBytesPerBlock - 1) / kBytesPerBlock, 1, kBlocksMax));
  port::LaunchShape shape;
  shape.grid[0] = blocks;
  shape.grid[1] = count;
  shape.block[0] = kThreads;
  void* arguments[] = {&orders};
  Lane* lane = next_lane();
  const Status status =
      lane == nullptr ? Status::no_memory : engine_.device().kernels()->launch(kernel_, shape, arguments, lane->stream);
  close_batch(lane == nullptr ? lanes_[0] : *lane, batch, status);
}

port::Event* PeerCopier::take_event() noexcept {
  if (!events_.empty()) {
    port::Event* event = events_.back();
    events_.pop_back();
    return event;
  }
  const Result<port::Event*> made = engine_.device().streams()->create_event(false);
  return made.ok() ? *made : nullptr;
}

void PeerCopier::close_batch(Lane& lane, Copies& batch, Status status) noexcept {
  port::Event* event = nullptr;
  if (status == Status::ok) {
    event = take_event();
    status = event == nullptr ? Status::no_memory : engine_.device().streams()->record(event, lane.stream);
  }
  if (status != Status::ok) {
    if (event != nullptr) events_.push_back(event);
    while (StageCopy* copy = batch.pop_front()) end(*copy, status);
    return;
  }
  while (StageCopy* copy = batch.pop_front()) {
    if (batch.empty()) copy->event = event;
    lane.copies.push_back(*copy);
  }
}

void PeerCopier::end(StageCopy& copy, Status status) noexcept {
  --under_way_;
  copy.done(copy, status);
}

unsigned PeerCopier::poll_lane(Lane& lane) noexcept {
  unsigned ended = 0;
  while (StageCopy* last = lane.copies.front()) {
    while (last->event == nullptr) last = Copies::next(*last);  // every batch ends with one
    const Status status = engine_.device().streams()->poll(last->event);
    if (status == Status::in_progress) break;
    for (bool more = true; more; ++ended) {
      StageCopy* copy = lane.copies.pop_front();
      more = copy->event == nullptr;
      if (!more) events_.push_back(std::exchange(copy->event, nullptr));
      end(*copy, status);
    }
  }
  return ended;
}

unsigned PeerCopier::poll() noexcept {
  unsigned ended = 0;
  for (Lane& lane : lanes_) ended += lane.copies.empty() ? 0 : poll_lane(lane);
  if (!asked_.empty()) issue();
  if (under_way_ == 0) engine_.detach(static_cast<Poller&>(*this));
  return ended;
}

}  // namespace brant
