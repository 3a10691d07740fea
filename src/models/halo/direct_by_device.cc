#include "models/halo/direct_by_device.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.h"
#include "base/seconds.h"
#include "brant/base/clock.h"

namespace brant::halo {
namespace {

constexpr std::uint32_t kBellsOfPair = 3;
/// That a block copies alone at least: two units of 8 bytes for each of 256 threads. More than so many bytes in all are
/// copied by all blocks together.
constexpr Word kStripBytes = 4096;
constexpr Word kInStripsMax = 256 * 1024;
/// For the answers of neighbours to a failure. They answer when they progress.
constexpr std::chrono::seconds kAnswersTake{1};

NotifierOptions enough_for(std::size_t neighbours) noexcept {
  return {.bells = 16,
          .others = static_cast<std::uint32_t>((kBellsOfPair + 1) * neighbours) + 24,
          .waits = static_cast<std::uint32_t>(neighbours) + 16};
}

/// Blocks that copy so much, each by itself.
Word strips_for(Word bytes) noexcept {
  if (bytes > kInStripsMax) return 0;
  return std::clamp<Word>((bytes + kStripBytes - 1) / kStripBytes, 1, notify::kBellParts);
}

}  // namespace

Word most_chunks(const DirectCopies& plan) noexcept {
  Word most = std::max<Word>(plan.own.last - plan.own.first, 1);
  for (const Phase& phase : plan.to) most = std::max(most, phase.last - phase.first);
  for (const Phase& phase : plan.landed) most = std::max(most, phase.last - phase.first);
  return most;
}

DirectByDevice::DirectByDevice(Runtime& runtime, const Layout& layout, DirectCopies& plan, const LaunchShape& shape)
    : runtime_(runtime),
      layout_(layout),
      plan_(plan),
      shape_(shape),
      notifier_(runtime, enough_for(plan.neighbours.size())),
      stream_(runtime.device().create_stream(StreamPriority::high)) {
  for (std::size_t n = 0; n < plan.neighbours.size(); ++n) {
    Pair& pair = pairs_.emplace_back();
    pair.owner = this;
    pair.number = n;
    const Rank peer{plan.neighbours[n].rank};
    pair.ready = notifier_.make({.rung_by = RungBy::peer, .seen_by = SeenBy::device, .peer = peer});
    pair.arrived = notifier_.make({.rung_by = RungBy::peer, .seen_by = SeenBy::device, .peer = peer});
    pair.gone = notifier_.make({.rung_by = RungBy::peer, .seen_by = SeenBy::host, .peer = peer});
    pair.fan_in = notifier_.fan_in(shape.grid[0]);
    pair.strips = strips_for(plan.copies.bytes_of(plan.to[n]));
  }
  plan_.copies.upload(runtime, plan_.bases.size());
}

// Bound
// -------------------------------------------------------------------------------------------------------------------

void DirectByDevice::offer(std::size_t neighbour, DirectOffer& offer) {
  const Pair& pair = pairs_[neighbour];
  offer.strips = std::max<Word>(pair.strips, 1);
  offer.ready = pair.ready.ticket();
  offer.arrived = pair.arrived.ticket();
  offer.gone = pair.gone.ticket();
}

void DirectByDevice::accept(std::size_t neighbour, const DirectOffer& offer) {
  Pair& pair = pairs_[neighbour];
  const Rank rank{plan_.neighbours[neighbour].rank};
  if (offer.strips == 0 || offer.strips > notify::kBellParts) {
    throw Error(Status::internal, fmt::format("halo: rank {} rings in {} parts", rank.value, offer.strips));
  }
  pair.arrives_in = offer.strips;
  pair.tell_ready = PeerBell(runtime_, rank, offer.ready);
  pair.tell_arrived = PeerBell(runtime_, rank, offer.arrived);
  pair.tell_gone = PeerBell(runtime_, rank, offer.gone);
  if (!pair.watch.pending()) watch(pair);
}

void DirectByDevice::put_neighbours(Memory& to, Word blocks) {
  std::vector<DirectNeighbour> all;
  Word block = 0;
  for (const Pair& pair : pairs_) {
    if (plan_.neighbours[pair.number].words_in_lines != 0) continue;
    DirectNeighbour& one = all.emplace_back();
    one.tell_ready = pair.tell_ready.device();
    one.tell_arrived = pair.tell_arrived.device();
    one.ready = pair.ready.device();
    one.arrived = pair.arrived.device();
    one.fan_in = {pair.fan_in.counts, blocks};
    one.cells = plan_.copies.range_of(plan_.to[pair.number]);
    one.landed = plan_.copies.range_of(plan_.landed[pair.number]);
    one.strips = pair.strips;
    one.first_block = block;
    one.arrives_in = pair.arrives_in;
    block = (block + pair.strips) % blocks;
  }
  on_device_.count = all.size();
  if (all.empty()) return;
  if (to.bytes() == 0) to = runtime_.allocate(runtime_.device_kind(), all.size() * sizeof(DirectNeighbour));
  runtime_.copy(to, std::span<const DirectNeighbour>(all));
}

void DirectByDevice::put_lines() {
  const auto bases = std::span(plan_.bases).first(plan_.bases.size() / plan_.turns);
  Word number = 0;
  lines_.begin();
  for (const Pair& pair : pairs_) {
    const Neighbour& neighbour = plan_.neighbours[pair.number];
    if (neighbour.words_in_lines == 0) continue;
    lines_.add(neighbour, plan_.copies, plan_.to[pair.number], plan_.landed[pair.number], bases);
    if (number == 0) number = pair.arrived.device().number;
  }
  on_device_.lines = lines_.upload(runtime_);
  on_device_.lines.number = number;
}

void DirectByDevice::bind() {
  const Status status = plan_.copies.set_bases(plan_.bases, stream_);
  if (status != Status::ok) throw_error(status, "halo: the addresses of the fields did not reach the device");
  plan_.copies.list_units(runtime_, plan_.turns);
  put_neighbours(neighbours_, shape_.grid[0]);
  put_lines();
  on_device_.table = plan_.copies.table();
  on_device_.neighbours = neighbours_.as<DirectNeighbour>();
  on_device_.own = plan_.copies.range_of(plan_.own);
  on_device_.bases_of_turn = plan_.turns == 1 ? 0 : plan_.bases.size() / plan_.turns;
  on_device_.units_of_turn = plan_.turns == 1 ? 0 : plan_.copies.listed();
}

// Run
// -------------------------------------------------------------------------------------------------------------------

void DirectByDevice::require_ready() const {
  for (const Pair& pair : pairs_) {
    if (is_gone(pair, epoch_ + 1)) throw_gone(pair, epoch_ + 1);
  }
}

Task<void> DirectByDevice::exchange(std::uint64_t times) {
  first_ = epoch_ + 1;
  epoch_ += times;
  const bool done = co_await run_kernel(first_, times);
  if (!done) co_await fail();
  done_ = epoch_;
  tell_if_refused();
}

DirectPlan DirectByDevice::device(unsigned blocks) {
  require_blocks(blocks);
  put_neighbours(guests_, blocks);
  DirectPlan plan = on_device_;
  plan.neighbours = guests_.as<DirectNeighbour>();
  return plan;
}

Task<void> DirectByDevice::accompany(PersistentKernel& kernel, std::uint64_t times, Task<bool> work) {
  guest_ = &kernel;
  first_ = epoch_ + 1;
  epoch_ += times;
  const bool done = co_await std::move(work);
  if (!done) co_await fail();
  guest_ = nullptr;
  done_ = epoch_;
  tell_if_refused();
}

void DirectByDevice::give_up() noexcept {
  if (given_up_) return;
  given_up_ = true;
  quit();
  for (Pair& pair : pairs_) {
    if (pair.watch.pending()) pair.watch.detach();
  }
}

void DirectByDevice::quit() noexcept {
  if (guest_ != nullptr) guest_->close();
  stop();
  tell_gone();
}

void DirectByDevice::tell_gone() noexcept {
  for (Pair& pair : pairs_) static_cast<void>(pair.tell_gone.ring(done_ + 1));
}

void DirectByDevice::tell_if_refused() noexcept {
  if (std::ranges::any_of(pairs_, [&](const Pair& pair) { return is_gone(pair, done_ + 1); })) tell_gone();
}

// Neighbours that leave
// -------------------------------------------------------------------------------------------------------------------

Task<void> DirectByDevice::fail() {
  std::exception_ptr why;
  try {
    throw_unfinished();
  } catch (const Error&) {
    why = std::current_exception();
  }
  quit();
  co_await neighbours_gone();
  std::rethrow_exception(why);
}

Task<void> DirectByDevice::neighbours_gone() {
  const TimePoint deadline = Clock::now() + kAnswersTake;
  for (Pair& pair : pairs_) {
    const auto left = std::max<std::chrono::nanoseconds>(deadline - Clock::now(), std::chrono::nanoseconds(1));
    if (pair.lost == Status::ok) static_cast<void>(co_await pair.gone.when(1, left));
    if (pair.lost != Status::ok || pair.gone.epoch() != 0) continue;
    log::warn(
        "halo: {} has not answered within {} s that the exchange was given up, and may still write into the fields of "
        "this process: keep them until it has ended",
        describe(pair), kAnswersTake.count());
  }
}

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
  // One that has left in order has rung before it ended.
  pair.lost = status == Status::ok || pair.gone.epoch() != 0 ? Status::canceled : status;
  if (epoch_ == done_) return tell_if_refused();
  if (!is_gone(pair, epoch_)) return;
  if (first_gone_ == nullptr) first_gone_ = &pair;
  if (guest_ != nullptr) {
    guest_->abort();
  } else {
    abort();
  }
}

/// It has not done this exchange, and will not.
bool DirectByDevice::is_gone(const Pair& pair, std::uint64_t epoch) const noexcept {
  if (pair.lost == Status::ok) return false;
  return pair.lost != Status::canceled || pair.gone.epoch() <= epoch;
}

bool DirectByDevice::has_rung(const Bell& bell, Word parts, std::uint64_t epoch) const {
  std::array<Word, notify::kBellParts> seen{};
  const ConstBuffer words(bell.device().word, parts * sizeof(Word), runtime_.device_kind());
  runtime_.copy(Buffer(seen.data(), words.bytes, MemoryKind::host), words);
  return std::all_of(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(parts),
                     [&](Word part) { return notify::reached(part, epoch); });
}

/// The exchanges of this run.
bool DirectByDevice::has_begun(const Pair& pair) const {
  const Neighbour& neighbour = plan_.neighbours[pair.number];
  if (neighbour.words_in_lines != 0) return LineTable::have_come(runtime_, neighbour, first_);
  return has_rung(pair.ready, 1, first_);
}

/// The last exchange of this run.
bool DirectByDevice::has_written(const Pair& pair) const {
  const Neighbour& neighbour = plan_.neighbours[pair.number];
  if (neighbour.words_in_lines != 0) return LineTable::have_come(runtime_, neighbour, epoch_);
  return has_rung(pair.arrived, pair.arrives_in, epoch_);
}

std::string DirectByDevice::describe(const Pair& pair) const {
  const Neighbour& neighbour = plan_.neighbours[pair.number];
  std::vector<int> own;
  for (const std::size_t field : neighbour.fields) own.push_back(layout_.first_block() + static_cast<int>(field));
  return fmt::format("rank {}, whose blocks {} exchange with blocks {} of this process", neighbour.rank,
                     fmt::join(neighbour.blocks, ", "), fmt::join(own, ", "));
}

void DirectByDevice::throw_gone(const Pair& pair, std::uint64_t epoch) const {
  if (pair.lost == Status::canceled) {
    throw Error(Status::peer_lost,
                fmt::format("halo: the exchange {} of mode direct was given up by {}", epoch, describe(pair)));
  }
  throw_error(pair.lost,
              fmt::format("halo: the exchange {} of mode direct could not be done with {}", epoch, describe(pair)));
}

void DirectByDevice::throw_unfinished() const {
  if (first_gone_ != nullptr) throw_gone(*first_gone_, epoch_);
  for (const Pair& pair : pairs_) {
    if (is_gone(pair, epoch_)) throw_gone(pair, epoch_);
  }
  const auto late = [&](const Pair& pair, const char* how) {
    return Error(Status::timed_out,
                 fmt::format("halo: the exchange {} of mode direct was given up after {:.1f} s: {} {}", epoch_,
                             in_seconds(layout_.options().patience), describe(pair), how));
  };
  // Who has begun may wait for one that has not.
  for (const Pair& pair : pairs_) {
    if (!has_begun(pair)) throw late(pair, "has not begun it");
  }
  for (const Pair& pair : pairs_) {
    if (!has_written(pair)) throw late(pair, "has begun it, and not written its cells");
  }
  throw Error(Status::canceled, fmt::format("halo: the exchange {} of mode direct was given up", epoch_));
}

}  // namespace brant::halo
