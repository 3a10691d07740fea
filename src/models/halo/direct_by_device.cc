#include "models/halo/direct_by_device.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/seconds.h"
#include "brant/core/stream_done.h"
#include "port/memory.h"

namespace brant::halo {
namespace {

constexpr std::uint32_t kBellsOfPair = 3;

void store(const Word& word, Word value) noexcept {
  std::atomic_ref(const_cast<Word&>(word)).store(value, std::memory_order_release);
}
Word load(const Word& word) noexcept {
  return std::atomic_ref(const_cast<Word&>(word)).load(std::memory_order_acquire);
}

NotifierOptions enough_for(std::size_t neighbours) noexcept {
  return {.bells = 16,
          .others = static_cast<std::uint32_t>((kBellsOfPair + 1) * neighbours) + 16,
          .waits = static_cast<std::uint32_t>(neighbours) + 16};
}

/// As many blocks as have something to copy for some neighbour, and not more than run at once.
unsigned blocks_for(Device device, const DirectKernel& kernel, const DirectCopies& plan) {
  Word most = std::max<Word>(plan.own.last - plan.own.first, 1);
  for (const Phase& phase : plan.to) most = std::max(most, phase.last - phase.first);
  LaunchShape one;
  one.block[0] = kChunkThreads;
  const unsigned fit =
      device.inner().kernels()->blocks_at_once(kernel.inner(), one).or_throw("halo: the kernel of mode direct");
  return static_cast<unsigned>(std::clamp<Word>(most, 1, std::max(fit, 1u)));
}

}  // namespace

DirectByDevice::DirectByDevice(Runtime& runtime, const Layout& layout, DirectCopies& plan)
    : runtime_(runtime),
      layout_(layout),
      plan_(plan),
      kernel_(load_direct_kernel(runtime.device())),
      notifier_(runtime, enough_for(plan.neighbours.size())),
      stream_(runtime.device().create_stream(StreamPriority::high)) {
  shape_.grid[0] = blocks_for(runtime.device(), kernel_, plan);
  shape_.block[0] = kChunkThreads;
  for (std::size_t n = 0; n < plan.neighbours.size(); ++n) {
    Pair& pair = pairs_.emplace_back();
    pair.owner = this;
    pair.number = n;
    const Rank peer{plan.neighbours[n].rank};
    pair.ready = notifier_.make({.rung_by = RungBy::peer, .seen_by = SeenBy::device, .peer = peer});
    pair.arrived = notifier_.make({.rung_by = RungBy::peer, .seen_by = SeenBy::device, .peer = peer});
    pair.gone = notifier_.make({.rung_by = RungBy::peer, .seen_by = SeenBy::host, .peer = peer});
    pair.fan_in = notifier_.fan_in(shape_.grid[0]);
  }
  static_assert(sizeof(notify::Told) == 128 && sizeof(notify::Asked) == 128);
  control_memory_ = runtime.allocate(MemoryKind::pinned, sizeof(notify::Told) + sizeof(notify::Asked));
  std::memset(control_memory_.data(), 0, control_memory_.bytes());
  control_.told = control_memory_.as<notify::Told>();
  control_.asked = reinterpret_cast<const notify::Asked*>(control_.told + 1);
  const auto patience = layout.options().patience;
  control_.patience_ns = patience == Worker::kForever ? 0 : static_cast<Word>(patience.count());
  plan_.copies.upload(runtime, plan_.bases.size());
  if (!pairs_.empty()) neighbours_ = runtime.allocate(runtime.device_kind(), pairs_.size() * sizeof(DirectNeighbour));
}

// Bound
// -------------------------------------------------------------------------------------------------------------------

void DirectByDevice::offer(std::size_t neighbour, DirectOffer& offer) {
  const Pair& pair = pairs_[neighbour];
  offer.ready = pair.ready.ticket();
  offer.arrived = pair.arrived.ticket();
  offer.gone = pair.gone.ticket();
}

void DirectByDevice::accept(std::size_t neighbour, const DirectOffer& offer) {
  Pair& pair = pairs_[neighbour];
  const Rank rank{plan_.neighbours[neighbour].rank};
  pair.tell_ready = PeerBell(runtime_, rank, offer.ready);
  pair.tell_arrived = PeerBell(runtime_, rank, offer.arrived);
  pair.tell_gone = PeerBell(runtime_, rank, offer.gone);
  if (!pair.watch.pending()) watch(pair);
}

void DirectByDevice::bind() {
  std::vector<DirectNeighbour> all;
  for (const Pair& pair : pairs_) {
    const Phase& to = plan_.to[pair.number];
    all.push_back({pair.tell_ready.device(), pair.tell_arrived.device(), pair.ready.device(), pair.arrived.device(),
                   pair.fan_in, to.first, to.last});
  }
  if (!all.empty()) runtime_.copy(neighbours_, std::span<const DirectNeighbour>(all));
  const Status status = plan_.copies.set_bases(plan_.bases, stream_);
  if (status != Status::ok) throw_error(status, "halo: the addresses of the fields did not reach the device");
  on_device_.table = plan_.copies.table();
  on_device_.neighbours = neighbours_.as<DirectNeighbour>();
  on_device_.count = all.size();
  on_device_.own_first = plan_.own.first;
  on_device_.own_last = plan_.own.last;
}

// Run
// -------------------------------------------------------------------------------------------------------------------

void DirectByDevice::require_ready() const {
  for (const Pair& pair : pairs_) {
    if (is_gone(pair, epoch_ + 1)) throw_gone(pair);
  }
}

Task<void> DirectByDevice::exchange() {
  running_ = true;
  ++epoch_;
  const Status launched = kernel_.launch(shape_, stream_, control_, on_device_, epoch_);
  if (launched != Status::ok) throw_error(launched, "halo: the kernel of mode direct was not launched");
  co_await stream_done(runtime_, stream_);
  running_ = false;
  if (load(control_.told->failed) != 0) throw_unfinished();
}

void DirectByDevice::give_up() noexcept {
  if (given_up_) return;
  given_up_ = true;
  abort();
  static_cast<void>(stream_.synchronize());  // its waits look whether they were aborted, and the rest ends by itself
  const std::uint64_t completed = running_ || load(control_.told->failed) != 0 ? epoch_ - 1 : epoch_;
  for (Pair& pair : pairs_) {
    if (pair.watch.pending()) pair.watch.detach();
    static_cast<void>(pair.tell_gone.ring(completed + 1));
  }
  running_ = false;
}

// Neighbours that leave
// -------------------------------------------------------------------------------------------------------------------

void DirectByDevice::watch(Pair& pair) noexcept {
  pair.watch.delivered = {[](void* self, const OpResult& outcome) noexcept {
                            auto& own = *static_cast<Pair*>(self);
                            own.owner->on_gone(own, outcome.status);
                          },
                          &pair};
  const Status status = pair.gone.post_when(pair.watch, 1, Worker::kForever);
  if (status != Status::in_progress) on_gone(pair, status);
}

void DirectByDevice::on_gone(Pair& pair, Status status) noexcept {
  pair.lost = status == Status::ok ? Status::canceled : status;
  if (running_ && is_gone(pair, epoch_)) abort();
}

/// It has not done this exchange, and will not.
bool DirectByDevice::is_gone(const Pair& pair, std::uint64_t epoch) const noexcept {
  if (pair.lost == Status::ok) return false;
  return pair.lost != Status::canceled || pair.gone.epoch() <= epoch;
}

void DirectByDevice::abort() noexcept { store(control_.asked->abort, 1); }

std::string DirectByDevice::describe(const Pair& pair) const {
  const Neighbour& neighbour = plan_.neighbours[pair.number];
  std::vector<int> own;
  for (const std::size_t field : neighbour.fields) own.push_back(layout_.first_block() + static_cast<int>(field));
  return fmt::format("rank {}, whose blocks {} exchange with blocks {} of this process", neighbour.rank,
                     fmt::join(neighbour.blocks, ", "), fmt::join(own, ", "));
}

void DirectByDevice::throw_gone(const Pair& pair) const {
  if (pair.lost == Status::canceled) {
    throw Error(Status::peer_lost,
                fmt::format("halo: the exchange {} of mode direct was given up by {}", epoch_, describe(pair)));
  }
  throw_error(pair.lost,
              fmt::format("halo: the exchange {} of mode direct could not be done with {}", epoch_, describe(pair)));
}

void DirectByDevice::throw_unfinished() const {
  for (const Pair& pair : pairs_) {
    if (is_gone(pair, epoch_)) throw_gone(pair);
  }
  const notify::Told& told = *control_.told;
  const Word bell = load(told.waits_for);
  for (const Pair& pair : pairs_) {
    const bool not_ready = pair.ready.number() == bell;
    if (!not_ready && pair.arrived.number() != bell) continue;
    throw Error(Status::timed_out,
                fmt::format("halo: the exchange {} of mode direct was given up after {:.1f} s: {} {}", epoch_,
                            in_seconds(layout_.options().patience), describe(pair),
                            not_ready ? "has not begun it" : "has begun it, and not written its cells"));
  }
  throw Error(Status::canceled, fmt::format("halo: the exchange {} of mode direct was given up", epoch_));
}

}  // namespace brant::halo
