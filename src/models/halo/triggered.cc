#include "models/halo/triggered.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "brant/core/stream_done.h"
#include "models/halo/require.h"
#include "models/halo/until.h"

namespace brant::halo {
namespace {

/// Of a message in mode `stream`: shorter ones cost more than the time that they are sent earlier.
constexpr std::size_t kGroupBytes = std::size_t{64} << 10;

MessageCut cut_of(const HaloOptions& options) noexcept {
  return {options.messages, options.mode == HaloMode::stream ? kGroupBytes : MessageCut::kWhole};
}

}  // namespace

TriggeredExchange::TriggeredExchange(Runtime& runtime, const HaloOptions& options)
    : FusedExchange(runtime, options, cut_of(options)),
      together_(options.mode == HaloMode::stacked || options.messages == HaloMessages::per_process) {}

TriggeredExchange::~TriggeredExchange() {
  unpacker_.kernel.close();
  packer_.kernel.close();
}

const char* TriggeredExchange::mode_name() const noexcept {
  return layout_.options().mode == HaloMode::stacked ? "stacked" : "stream";
}

// Planned
// -------------------------------------------------------------------------------------------------------------------

void TriggeredExchange::make_bells() {
  if (notifier_ != nullptr) return;
  const auto count = static_cast<std::uint32_t>(sends_.size() + receives_.size());
  notifier_ = std::make_unique<Notifier>(
      runtime_, NotifierOptions{.bells = count + 16, .others = 2 * count + 32, .waits = count + 16});
  make_bells_of_sends();
  make_bells_of_receives();
  taken_ = notifier_->make({.rung_by = RungBy::device, .seen_by = SeenBy::host});
  sent_ = notifier_->make({.rung_by = RungBy::host, .seen_by = SeenBy::device});
}

void TriggeredExchange::make_bells_of_sends() {
  for (const Part& part : sends_) {
    ToRank& to = to_[part.transfer->rank];
    to.owner = this;
    to.parts.push_back(&part);
    to.packed.push_back(notifier_->make({.rung_by = RungBy::device, .seen_by = SeenBy::host}));
    TriggeredMessage& planned = packs_.emplace_back();
    planned.first = part.phase.first;
    planned.last = part.phase.last;
    planned.packed = to.packed.back().device();
    if (together_) planned.fan_in = notifier_->fan_in(1);
  }
}

void TriggeredExchange::make_bells_of_receives() {
  for (const Part& part : receives_) {
    FromRank& from = from_[part.transfer->rank];
    from.owner = this;
    Coming& message = coming_.emplace_back(Coming{&from, &part});
    from.messages.push_back(&message);
    TriggeredMessage& planned = unpacks_.emplace_back();
    planned.first = part.phase.first;
    planned.last = part.phase.last;
    planned.number = from.messages.size() - 1;
  }
  std::vector<TriggeredNeighbour> neighbours;
  for (auto& [rank, from] : from_) {
    from.came = notifier_->make({.rung_by = RungBy::host, .seen_by = SeenBy::device});
    from.passed_on = notifier_->make({.rung_by = RungBy::device, .seen_by = SeenBy::device});
    neighbours.push_back({from.came.device(), from.passed_on.device().word, from.messages.size()});
  }
  for (std::size_t i = 0; i < receives_.size(); ++i) {
    const auto from = from_.find(receives_[i].transfer->rank);
    unpacks_[i].neighbour = static_cast<Word>(std::distance(from_.begin(), from));
  }
  if (neighbours.empty()) return;
  neighbours_ = runtime_.allocate(runtime_.device_kind(), neighbours.size() * sizeof(TriggeredNeighbour));
  runtime_.copy(neighbours_, std::span<const TriggeredNeighbour>(neighbours));
}

TriggeredPlan TriggeredExchange::plan_of(Memory& messages, const std::vector<TriggeredMessage>& table) {
  if (!table.empty()) {
    if (messages.bytes() == 0)
      messages = runtime_.allocate(runtime_.device_kind(), table.size() * sizeof(TriggeredMessage));
    runtime_.copy(messages, std::span<const TriggeredMessage>(table));
  }
  TriggeredPlan plan;
  plan.table = copies_.table();
  plan.messages = messages.as<TriggeredMessage>();
  plan.count = table.size();
  plan.together = together_ ? 1 : 0;
  return plan;
}

TriggeredPlan TriggeredExchange::plan_packs(Memory& messages, unsigned blocks) {
  for (TriggeredMessage& message : packs_) message.fan_in.of = blocks;
  TriggeredPlan plan = plan_of(messages, packs_);
  plan.own_first = own_.first;
  plan.own_last = own_.last;
  return plan;
}

TriggeredPlan TriggeredExchange::plan_unpacks(Memory& messages) {
  TriggeredPlan plan = plan_of(messages, unpacks_);
  plan.neighbours = neighbours_.as<TriggeredNeighbour>();
  plan.neighbour_count = from_.size();
  plan.unpacks = 1;
  return plan;
}

// Kernels of the library
// -------------------------------------------------------------------------------------------------------------------

void TriggeredExchange::start() {
  make_bells();
  kernel_ = std::make_unique<TriggeredKernel>(load_triggered_kernel(runtime_.device()));
  const unsigned at_once = blocks_at_once(runtime_.device(), kernel_->inner(), kStayThreads);
  // What stays in this process is copied by all blocks as well.
  const unsigned packing = std::max(blocks_for(sends_, at_once), staying_blocks(own_.last - own_.first, at_once));
  packer_.plan = plan_packs(packer_.messages, packing);
  // Where there are several, one more looks for what comes.
  const unsigned unpacking = blocks_for(receives_, at_once);
  unpacker_.plan = plan_unpacks(unpacker_.messages);
  // One that packs comes first, so that one that waits never stands before it.
  launch(packer_, packing, "halo pack");
  launch(unpacker_, unpacking == 1 ? 1 : std::min(unpacking + 1, staying_share(at_once)), "halo unpack");
}

/// As many as are of use for messages.
unsigned TriggeredExchange::blocks_for(const std::deque<Part>& parts, unsigned at_once) const noexcept {
  if (!together_) return std::clamp<unsigned>(static_cast<unsigned>(parts.size()), 1, staying_share(at_once));
  Word chunks = 0;
  for (const Part& part : parts) chunks += part.phase.last - part.phase.first;
  return staying_blocks(chunks, at_once);
}

void TriggeredExchange::launch(Worker& worker, unsigned blocks, const char* name) {
  worker.finished = notifier_->make({.rung_by = RungBy::device, .seen_by = SeenBy::host});
  worker.plan.finished = worker.finished.device();
  const PersistentOptions options{.name = name, .patience = layout_.options().patience};
  worker.kernel = PersistentKernel::launch(*notifier_, *kernel_, shape_of(blocks, kStayThreads), options, worker.plan);
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
void TriggeredExchange::send_packed(ToRank& to) noexcept {
  while (to.next < to.parts.size()) {
    to.wait.delivered = {[](void* self, const OpResult& outcome) noexcept {
                           auto& own = *static_cast<ToRank*>(self);
                           if (outcome.ok()) return own.owner->send_packed(own);
                           own.owner->settle(outcome.status);
                         },
                         &to};
    const Status packed = to.packed[to.next].post_when(to.wait, epoch_, layout_.options().patience);
    if (packed == Status::in_progress) return;
    if (packed != Status::ok) return settle(packed);
    const Part& part = *to.parts[to.next++];
    transfers_.post(*part.transfer, part_of(send_buffer_, part));
  }
  settle(Status::ok);
}

/// The kernel hears how many have come in their order: one word for each process.
void TriggeredExchange::came(Coming& message, const OpResult& outcome) noexcept {
  FromRank& from = *message.from;
  message.has_come = outcome.ok();
  const std::size_t before = from.next;
  while (from.next < from.messages.size() && from.messages[from.next]->has_come) ++from.next;
  if (!outcome.ok() || from.next == before) return settle(outcome.status);
  settle(from.came.ring((epoch_ - 1) * from.messages.size() + from.next));
}

void TriggeredExchange::post_receives() {
  for (auto& [rank, from] : from_) from.next = 0;
  for (Coming& message : coming_) {
    message.has_come = false;
    message.part->transfer->then = {[](void* self, const OpResult& outcome) noexcept {
                                      auto& own = *static_cast<Coming*>(self);
                                      own.from->owner->came(own, outcome);
                                    },
                                    &message};
  }
  for (const Coming& message : coming_) {
    transfers_.post(*message.part->transfer, part_of(receive_buffer_, *message.part));
  }
}

void TriggeredExchange::submit(Worker& worker) {
  worker.finish.delivered = step_done();
  const Status status = worker.finished.post_when(worker.finish, epoch_, layout_.options().patience);
  if (status != Status::in_progress) throw_error(status, "halo: a bell of a kernel that stays");
  require(worker.kernel.submit({{epoch_, copies_.table().unit_max, 0, 0}}), "halo: a kernel takes no exchange");
}

Task<void> TriggeredExchange::put_bases() {
  if (copies_.has_bases(bases_)) co_return;
  require(copies_.set_bases(bases_, stream_), "halo: the addresses of the fields did not reach the device");
  co_await stream_done(runtime_, stream_);
}

void TriggeredExchange::post_messages() {
  post_receives();
  for (auto& [rank, to] : to_) {
    to.next = 0;
    send_packed(to);
  }
}

Task<void> TriggeredExchange::exchange(std::span<const Buffer> fields) {
  prepare(fields);
  if (!by_device_) {
    co_await exchange_prepared();
    co_return;
  }
  co_await put_bases();
  if (kernel_ == nullptr) start();
  if (failed_ != Status::ok) throw_error(failed_, "halo: a kernel that should stay has ended");
  ++epoch_;
  steps_ = to_.size() + coming_.size() + 2;
  submit(packer_);
  submit(unpacker_);
  post_messages();
  // All of it is done, or something has failed.
  co_await Until{waiter_, [this] { return steps_ == 0 || failed_ != Status::ok; }};
  if (failed_ == Status::ok) {
    co_await transfers_.ended();
    co_return;
  }
  transfers_.throw_if_failed();
  throw_error(failed_, fmt::format("halo: the exchange {} of mode {} was not done by the kernels that pack and unpack",
                                   epoch_, mode_name()));
}

void TriggeredExchange::give_up() noexcept {
  if (guest_ != nullptr) std::exchange(guest_, nullptr)->close();
  if (take_.pending()) take_.detach();
  for (auto& [rank, to] : to_) {
    if (to.wait.pending()) to.wait.detach();
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
