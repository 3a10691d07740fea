#include "ops/rma/atomics.h"

#include <cstring>

#include "base/atomic_word.h"
#include "base/log.h"
#include "ops/mover/mover.h"
#include "ops/rma/table.h"

namespace brant {
namespace {

/// The bits to where the caller wants the value.
void tell_before(void* before, std::uint64_t bits, std::size_t bytes) noexcept {
  if (before == nullptr) return;
  const auto half = static_cast<std::uint32_t>(bits);
  std::memcpy(before, bytes == sizeof(half) ? static_cast<const void*>(&half) : &bits, bytes);
}

/// Looks at the alarm of an owner that may sleep in a wait for the word.
void wake_for(const Atomic& what, const Peer& owner) noexcept {
  if (what.operation != AtomicOp::load && owner.link != nullptr) owner.link->wake();
}

}  // namespace

RmaAtomics::RmaAtomics(RmaTable& table)
    : engine_(table.engine()),
      device_(engine_, table.mover().stages(),
              {[](void* self, DeviceCopy& copy, Status status) noexcept {
                 auto& done = static_cast<Record::ByDevice&>(copy);
                 if (status == Status::ok) done.record->bits = *done.before;
                 static_cast<RmaAtomics*>(self)->device_.give_back(done);
                 static_cast<RmaAtomics*>(self)->ended(*done.record, status);
               },
               this}),
      asked_(
          table,
          [](void* self, AskedAtomic& atomic, Status status, std::uint64_t bits) noexcept {
            Record& record = *static_cast<Record::ByOwner&>(atomic).record;
            record.bits = bits;
            static_cast<RmaAtomics*>(self)->ended(record, status);
          },
          this) {}

RmaAtomics& RmaAtomics::of(RmaTarget& target) noexcept { return target.table_.atomics(); }

Status RmaAtomics::check(const RmaTarget& target, const Call& call) const noexcept {
  const Atomic& what = call.what;
  const bool aligned = (target.address_ + call.offset) % what.bytes() == 0;
  const bool sound = what.exists() && aligned && (call.before == nullptr || what.operation != AtomicOp::store);
  if (sound) [[likely]]
    return target.check_place("an atomic", call.offset, what.bytes());
  if (!what.exists()) {
    log::error("an atomic on a segment of rank {}: there is no operation {} on words of type {}",
               target.peer_.rank.value, static_cast<int>(what.operation), static_cast<int>(what.type));
  } else if (!aligned) {
    log::error("an atomic on a segment of rank {}: its word of {} bytes at offset {} is not aligned to its size",
               target.peer_.rank.value, what.bytes(), call.offset);
  } else {
    log::error("an atomic on a segment of rank {}: a store does not tell the value before; swap does",
               target.peer_.rank.value);
  }
  return Status::invalid_argument;
}

Result<Path> RmaAtomics::choose(RmaTarget& target, Path forced) noexcept {
  if (forced == Path::automatic) forced = engine_.options().path;
  const bool named = forced == Path::shm || forced == Path::ucx;  // the others concern copies alone
  target.look_for_file();
  const char* reason = nullptr;
  if (host_accessible(target.kind_)) {
    if (target.mapped_ != nullptr && forced != Path::ucx) return Path::shm;
    if (target.file_ && forced != Path::ucx) return Path::automatic;
    if (forced != Path::shm && target.reach_over_network()) return Path::ucx;
    reason = forced == Path::shm ? "its memory is not mapped here" : "the network does not take its memory";
  } else {
    if (!named) return target.mapped_ == nullptr && target.file_ ? Path::automatic : Path::kernel;
    reason = "a device performs them, and no CPU";
  }
  log::error(
      "atomics on a segment of {} memory of rank {}, path {}: {}. Use BRANT_PATH=auto, and memory that can be "
      "mapped (docs/guide/one-sided.md)",
      memory_kind_name(target.kind_), target.peer_.rank.value, path_name(forced), reason);
  return Status::not_supported;
}

Status RmaAtomics::post(RmaTarget& target, const Call& call, Op& op) noexcept {
  op.result = {Status::ok, 0};
  if (const Status status = check(target, call); status != Status::ok) return status;
  const Result<Path> path = choose(target, call.forced);
  if (!path) return path.status();
  if (*path == Path::shm) return by_cpu(target, call, op);
  Record* const record = records_.take(*this, target, call);
  if (record == nullptr) return records_.refusal();
  ++target.live_;
  record->path = *path;
  record->posted_at = engine_.trace() != nullptr ? Clock::now() : engine_.clock().recently();
  record->lost = &RmaAtomics::on_lost;
  record->cancel = [](OpOwner&) noexcept {};  // it cannot be taken back
  Status status = start(*record);
  if (status == Status::in_progress) {
    record->own(engine_.completions(), op);
    target.peer_.add_outstanding(*record);
    return status;
  }
  if (status == Status::ok) {
    op.result.bytes = call.what.bytes();
    tell_before(call.before, record->bits, call.what.bytes());
    count(record->path, call.what.bytes());
  } else if (status != Status::limit_reached) {
    status = target.final_status(status);
  }
  release(*record);
  return status;
}

Status RmaAtomics::by_cpu(RmaTarget& target, const Call& call, Op& op) noexcept {
  const TimePoint posted_at = engine_.trace() != nullptr ? Clock::now() : TimePoint{};
  const std::size_t bytes = call.what.bytes();
  tell_before(call.before, perform_atomic(target.mapped_ + call.offset, call.what), bytes);
  wake_for(call.what, target.peer_);
  op.result.bytes = bytes;
  count(Path::shm, bytes);
  trace(target, Path::shm, posted_at, bytes);
  return Status::ok;
}

Status RmaAtomics::start(Record& record) noexcept {
  switch (record.path) {
    case Path::ucx: return by_wire(record);
    case Path::kernel: return record.target.mapped_ != nullptr ? by_device(record) : by_owner(record);
    case Path::shm:
      record.bits = perform_atomic(record.target.mapped_ + record.call.offset, record.call.what);
      wake_for(record.call.what, record.target.peer_);
      return Status::ok;
    default: return await_file(record);
  }
}

Status RmaAtomics::by_wire(Record& record) noexcept {
  RmaTarget& target = record.target;
  record.wire.on_complete = [](port::WireOp& op) noexcept {
    Record& done = *static_cast<Record::ByWire&>(op).record;
    done.atomics.engine_.progress().note_wire_op(-1);
    done.atomics.ended(done, op.status);
  };
  const Status status = engine_.wire().remote_memory()->atomic(target.peer_.endpoint, target.way_.key,
                                                               target.address_ + record.call.offset, record.call.what,
                                                               &record.bits, record.wire);
  if (status == Status::in_progress) engine_.progress().note_wire_op(+1);
  return status;
}

Status RmaAtomics::by_device(Record& record) noexcept {
  record.device.word = record.target.mapped_ + record.call.offset;
  record.device.what = record.call.what;
  return device_.start(record.device);
}

Status RmaAtomics::by_owner(Record& record) noexcept {
  RmaTarget& target = record.target;
  return asked_.ask(record.asked, target.peer_, target.segment_, record.call.offset, record.call.what);
}

Status RmaAtomics::await_file(Record& record) noexcept {
  awaiting_.push_back(record.device);
  engine_.pollers().attach(record.target);
  return Status::in_progress;
}

unsigned RmaAtomics::begin_late(RmaTarget& target) noexcept {
  DeviceCopies due, others;
  while (DeviceCopy* copy = awaiting_.pop_front()) {
    const bool is_its = &static_cast<Record::ByDevice&>(*copy).record->target == &target;
    (is_its ? due : others).push_back(*copy);
  }
  while (DeviceCopy* copy = others.pop_front()) awaiting_.push_back(*copy);
  unsigned begun = 0;
  for (; DeviceCopy* copy = due.pop_front(); ++begun) {
    Record& record = *static_cast<Record::ByDevice&>(*copy).record;
    const Result<Path> path = choose(target, record.call.forced);
    if (path) record.path = *path;
    const Status status = path ? start(record) : path.status();
    if (status == Status::limit_reached) {
      record.path = Path::automatic;
      static_cast<void>(await_file(record));
    } else if (status != Status::in_progress) {
      ended(record, status);
    }
  }
  return begun;
}

void RmaAtomics::count(Path path, std::size_t bytes) noexcept {
  PathTally& tally = engine_.counters().path(path);
  tally.sends.add();
  tally.bytes_sent.add(bytes);
}

void RmaAtomics::trace(const RmaTarget& target, Path path, TimePoint posted_at, std::size_t bytes) noexcept {
  if (engine_.trace() == nullptr) return;
  engine_.trace()->add_transfer("atomic", path, target.peer_.rank.value, posted_at, bytes);
}

/// The target may be gone afterwards.
void RmaAtomics::release(Record& record) noexcept {
  RmaTarget& target = record.target;
  trace(target, record.path, record.posted_at, record.call.what.bytes());
  target.peer_.remove_outstanding(record);
  records_.give_back(&record);
  target.let_go();
}

void RmaAtomics::ended(Record& record, Status status) noexcept {
  const std::size_t bytes = record.call.what.bytes();
  if (status == Status::ok && record.target.peer_.lost) status = Status::peer_lost;
  status = record.target.final_status(status);
  if (status == Status::ok) {
    count(record.path, bytes);
    if (record.observed()) tell_before(record.call.before, record.bits, bytes);
  }
  engine_.completions().finish(record, {status, status == Status::ok ? bytes : 0});
  release(record);
}

/// The network ends its own when it disconnects, a device does when it has done them. An owner answers no more.
void RmaAtomics::on_lost(PeerOp& op) noexcept {
  auto& record = static_cast<Record&>(op);
  if (record.asked.id != 0) {
    record.atomics.asked_.forget(record.asked);
  } else if (record.path == Path::automatic) {
    record.atomics.awaiting_.remove(record.device);
  } else {
    return;
  }
  record.atomics.ended(record, Status::peer_lost);
}

}  // namespace brant
