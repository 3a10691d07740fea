#include "models/halo/triggered.h"

#include <algorithm>

#include <fmt/format.h>

#include "brant/core/stream_done.h"
#include "models/halo/require.h"
#include "models/halo/until.h"
#include "port/memory.h"

namespace brant::halo {
namespace {

/// Parts of a block that copy a chunk each.
constexpr unsigned kSquads = 4;

HaloMessages messages_of(const HaloOptions& options) noexcept {
  // A block does its messages alone: with all in one there would be one block.
  const bool split = options.mode == HaloMode::stream && options.messages == HaloMessages::per_process;
  return split ? HaloMessages::per_block : options.messages;
}

}  // namespace

TriggeredExchange::TriggeredExchange(Runtime& runtime, const HaloOptions& options)
    : FusedExchange(runtime, options, messages_of(options)) {}

TriggeredExchange::~TriggeredExchange() {
  unpacker_.kernel.close();
  packer_.kernel.close();
}

// Started
// -------------------------------------------------------------------------------------------------------------------

void TriggeredExchange::start() {
  const std::size_t messages = sends_.size() + receives_.size();
  const auto count = static_cast<std::uint32_t>(messages);
  notifier_ = std::make_unique<Notifier>(
      runtime_, NotifierOptions{.bells = count + 16, .others = 2 * count + 32, .waits = count + 16});
  kernel_ = std::make_unique<TriggeredKernel>(load_triggered_kernel(runtime_.device()));
  LaunchShape one;
  one.block[0] = kChunkThreads * kSquads;
  const unsigned share = std::max(
      runtime_.device().inner().kernels()->blocks_at_once(kernel_->inner(), one).or_throw("halo: kernels that stay") /
          kResidentShare,
      1u);
  // One that packs comes first, so that one that waits never stands before it.
  make(packer_, sends_, false, share);
  launch(packer_, "halo pack");
  make(unpacker_, receives_, true, share);
  launch(unpacker_, "halo unpack");
}

void TriggeredExchange::make(Worker& worker, const std::deque<Part>& parts, bool unpacks, unsigned blocks) {
  const bool stacked = layout_.options().mode == HaloMode::stacked;
  if (!stacked) blocks = std::min<unsigned>(blocks, static_cast<unsigned>(std::max<std::size_t>(parts.size(), 1)));
  worker.shape.grid[0] = blocks;
  worker.shape.block[0] = kChunkThreads * kSquads;
  std::vector<TriggeredMessage> table;
  for (const Part& part : parts) {
    Triggered& message = worker.messages.emplace_back();
    message.owner = this;
    message.part = &part;
    message.bell = notifier_->make(unpacks ? BellOptions{.rung_by = RungBy::host, .seen_by = SeenBy::device}
                                           : BellOptions{.rung_by = RungBy::device, .seen_by = SeenBy::host});
    if (!unpacks && stacked) message.fan_in = notifier_->fan_in(blocks);
    table.push_back({part.phase.first, part.phase.last, message.bell.device(), message.fan_in});
  }
  if (!table.empty()) {
    worker.table = runtime_.allocate(runtime_.device_kind(), table.size() * sizeof(TriggeredMessage));
    runtime_.copy(worker.table, std::span<const TriggeredMessage>(table));
  }
  worker.finished = notifier_->make({.rung_by = RungBy::device, .seen_by = SeenBy::host});
  worker.plan.table = copies_.table();
  worker.plan.messages = worker.table.as<TriggeredMessage>();
  worker.plan.count = table.size();
  if (!unpacks) worker.plan.own_first = own_.first;
  if (!unpacks) worker.plan.own_last = own_.last;
  worker.plan.finished = worker.finished.device();
  worker.passed_on = notifier_->make({.rung_by = RungBy::device, .seen_by = SeenBy::device});
  worker.plan.passed_on = worker.passed_on.device();
  worker.plan.stacked = stacked ? 1 : 0;
  worker.plan.unpacks = unpacks ? 1 : 0;
}

void TriggeredExchange::launch(Worker& worker, const char* name) {
  const PersistentOptions options{.name = name, .patience = layout_.options().patience};
  worker.kernel = PersistentKernel::launch(*notifier_, *kernel_, worker.shape, options, worker.plan);
  worker.end.delivered = kernel_ended();
  const Status status = worker.kernel.post_ended(worker.end);
  if (status != Status::in_progress) throw_error(status, "halo: a kernel that should stay has ended");
}

// Run
// -------------------------------------------------------------------------------------------------------------------

Completion TriggeredExchange::step_done() noexcept {
  return {[](void* self, const OpResult& outcome) noexcept {
            static_cast<TriggeredExchange*>(self)->settle(outcome.status);
          },
          this};
}

Completion TriggeredExchange::kernel_ended() noexcept {
  return {[](void* self, const OpResult& outcome) noexcept {
            auto& own = *static_cast<TriggeredExchange*>(self);
            own.failed_ = outcome.ok() ? Status::canceled : outcome.status;
            own.waiter_.resume();
          },
          this};
}

void TriggeredExchange::settle(Status status) noexcept {
  --steps_;
  if (status != Status::ok && failed_ == Status::ok) failed_ = status;
  if (steps_ == 0 || failed_ != Status::ok) waiter_.resume();
}

/// Messages of one channel go in their order, in whichever they were packed.
void TriggeredExchange::packed(Triggered& message, const OpResult& outcome) noexcept {
  message.is_packed = outcome.ok();
  const int rank = message.part->transfer->rank;
  std::size_t& next = next_[rank];
  while (next < packer_.messages.size()) {
    const Triggered& one = packer_.messages[next];
    if (one.part->transfer->rank != rank || !one.is_packed) break;
    transfers_.post(*one.part->transfer, part_of(send_buffer_, *one.part));
    ++next;
  }
  settle(outcome.status);
}

void TriggeredExchange::came(Triggered& message, const OpResult& outcome) noexcept {
  settle(outcome.ok() ? message.bell.ring(epoch_) : outcome.status);
}

void TriggeredExchange::post_messages() {
  for (Triggered& message : unpacker_.messages) {
    message.part->transfer->then = {[](void* self, const OpResult& outcome) noexcept {
                                      auto& own = *static_cast<Triggered*>(self);
                                      own.owner->came(own, outcome);
                                    },
                                    &message};
    transfers_.post(*message.part->transfer, part_of(receive_buffer_, *message.part));
  }
  for (std::size_t i = packer_.messages.size(); i-- > 0;) {
    packer_.messages[i].is_packed = false;
    next_[packer_.messages[i].part->transfer->rank] = i;
  }
  for (Triggered& message : packer_.messages) {
    message.packed.delivered = {[](void* self, const OpResult& outcome) noexcept {
                                  auto& own = *static_cast<Triggered*>(self);
                                  own.owner->packed(own, outcome);
                                },
                                &message};
    const Status status = message.bell.post_when(message.packed, epoch_, layout_.options().patience);
    if (status != Status::in_progress) packed(message, {status, 0});
  }
}

void TriggeredExchange::submit(Worker& worker) {
  worker.finish.delivered = step_done();
  const Status status = worker.finished.post_when(worker.finish, epoch_, layout_.options().patience);
  if (status != Status::in_progress) throw_error(status, "halo: a bell of a kernel that stays");
  require(worker.kernel.submit({{epoch_, copies_.table().unit_max, 0, 0}}), "halo: a kernel takes no exchange");
}

Task<void> TriggeredExchange::exchange(std::span<const Buffer> fields) {
  prepare(fields);
  if (!by_device_) {
    co_await FusedExchange::exchange(fields);
    co_return;
  }
  if (!copies_.has_bases(bases_)) {
    require(copies_.set_bases(bases_, stream_), "halo: the addresses of the fields did not reach the device");
    co_await stream_done(runtime_, stream_);
  }
  if (notifier_ == nullptr) start();
  if (failed_ != Status::ok) throw_error(failed_, "halo: a kernel that should stay has ended");
  ++epoch_;
  steps_ = packer_.messages.size() + unpacker_.messages.size() + 2;
  submit(packer_);
  submit(unpacker_);
  post_messages();
  // All bells have rung, or something has failed.
  co_await Until{waiter_, [this] { return steps_ == 0 || failed_ != Status::ok; }};
  if (failed_ == Status::ok) {
    co_await transfers_.ended();
    co_return;
  }
  transfers_.throw_if_failed();
  throw_error(failed_, fmt::format("halo: the exchange {} of mode {} was not done by the kernels that pack and unpack",
                                   epoch_, layout_.options().mode == HaloMode::stacked ? "stacked" : "stream"));
}

void TriggeredExchange::give_up() noexcept {
  for (Triggered& message : packer_.messages) {
    if (message.packed.pending()) message.packed.detach();
  }
  for (Worker* worker : {&packer_, &unpacker_}) {
    if (worker->finish.pending()) worker->finish.detach();
    if (worker->end.pending()) worker->end.detach();
  }
  unpacker_.kernel.close();
  packer_.kernel.close();
  FusedExchange::give_up();
}

}  // namespace brant::halo
