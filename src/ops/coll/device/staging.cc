#include "ops/coll/device/staging.h"

#include <utility>

#include "base/log.h"

namespace brant::coll {
namespace {

using Kind = CollectiveKind;

constexpr std::uint64_t kAlignment = 256;

/// What has to be in `out` before the call: what the member gives there, and what the call leaves as it is.
Extent needed_before(const Work& work, const Members& members, bool in_place) noexcept {
  const Extent all{0, work.out_bytes};
  switch (work.kind) {
    case Kind::broadcast: return work.is_root(members) ? all : Extent{};
    case Kind::allgather:
    case Kind::gather:
      return in_place ? Extent{work.block_offset(members.self), work.block_bytes(members.self)} : Extent{};
    case Kind::allreduce:
    case Kind::reduce:
    case Kind::reduce_scatter:
    case Kind::scan:
    case Kind::alltoall:
    case Kind::scatter: return in_place ? all : Extent{};
    default: return all;
  }
}

}  // namespace

Status look_at_memory(MemoryKinds& kinds, const Collective& call, const Work& work, const std::string& team,
                      Sides& sides) noexcept {
  const auto look = [&](const void* data, std::uint64_t bytes, MemoryKind kind, MemoryKind& found) noexcept {
    if (bytes == 0) return Status::ok;
    const Status status = kinds.resolve(data, static_cast<std::size_t>(bytes), kind);
    if (status == Status::ok) {
      found = kind;
    } else {
      log::error("team {}: {} bytes at {} were given to a collective: {}", team, bytes, data, status_text(status));
    }
    return status;
  };
  const Status status = look(call.in.data, work.in_bytes, call.in.kind, sides.in);
  return status == Status::ok ? look(call.out.data, work.out_bytes, call.out.kind, sides.out) : status;
}

const MoveEvents Staging::kEvents = {&Staging::ended, nullptr};

Status Staging::prepare(const Members& members, const Sides& sides, Work& work) noexcept {
  const bool in_place = work.out != nullptr && work.in >= work.out && work.in < work.out + work.out_bytes;
  const std::uint64_t in_room = !host_accessible(sides.in) && !in_place ? work.in_bytes : 0;
  const std::uint64_t out_room = !host_accessible(sides.out) ? work.out_bytes : 0;
  const std::uint64_t out_at = (in_room + kAlignment - 1) / kAlignment * kAlignment;
  const Result<StagePool::Lease> lease = stages_->take(static_cast<std::size_t>(out_at + out_room));
  if (!lease) return lease.status();
  lease_ = *lease;
  auto* const memory = static_cast<std::byte*>(lease_.data);
  if (out_room != 0) {
    out_ = MoveEnd(work.out, sides.out);
    out_bytes_ = out_room;
    pinned_out_ = memory + out_at;
    brought_ = needed_before(work, members, in_place);
    takes_back_ = work.kind != Kind::broadcast || !work.is_root(members);
    if (in_place) work.in = pinned_out_ + (work.in - work.out);
    work.out = pinned_out_;
  }
  if (in_room != 0) {
    in_ = MoveEnd(work.in, sides.in);
    in_bytes_ = in_room;
    pinned_in_ = memory;
    work.in = memory;
  }
  return Status::ok;
}

Status Staging::bring() noexcept {
  if (phase_ == Phase::before) {
    phase_ = Phase::bringing;
    if (in_bytes_ != 0) start(in_leg_, in_, MoveEnd(pinned_in_, MemoryKind::pinned), in_bytes_);
    if (brought_.bytes != 0) {
      MoveEnd from = out_;
      from.address += brought_.offset;
      start(out_leg_, from, MoveEnd(pinned_out_ + brought_.offset, MemoryKind::pinned), brought_.bytes);
    }
  }
  if (is_busy()) return Status::in_progress;
  if (phase_ == Phase::bringing) phase_ = Phase::there;
  return failed_;
}

Status Staging::take_back() noexcept {
  if (phase_ == Phase::there) {
    phase_ = Phase::returning;
    if (takes_back_) start(out_leg_, MoveEnd(pinned_out_, MemoryKind::pinned), out_, out_bytes_);
  }
  if (is_busy()) return Status::in_progress;
  phase_ = Phase::done;
  return failed_;
}

void Staging::start(Leg& leg, MoveEnd from, MoveEnd to, std::uint64_t bytes) noexcept {
  leg.from = from;
  leg.to = to;
  leg.bytes = static_cast<std::size_t>(bytes);
  const Status status = mover_.start_staging(leg);
  if (status == Status::in_progress) {
    ++under_way_;
  } else if (failed_ == Status::ok) {
    failed_ = status;
  }
}

void Staging::ended(Move& move, Status status) noexcept {
  Staging& self = static_cast<Leg&>(move).owner;
  if (self.failed_ == Status::ok) self.failed_ = status;
  if (--self.under_way_ == 0 && self.record_ != nullptr)
    self.end_(self.context_, *std::exchange(self.record_, nullptr));
}

}  // namespace brant::coll
