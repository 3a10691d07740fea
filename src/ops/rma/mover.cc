#include "ops/rma/mover.h"

#include <algorithm>

#include "ops/rma/target.h"

namespace brant {
namespace {

RmaPlace shifted(RmaPlace place, std::size_t bytes) noexcept {
  place.address = static_cast<std::byte*>(place.address) + (place.over_wire ? 0 : bytes);
  place.remote_address += bytes;
  return place;
}

std::size_t piece_bytes(const RmaTransfer& transfer) noexcept {
  return transfer.path == Path::staged ? std::min(transfer.bytes - transfer.moved, RmaMover::kPieceBytes)
                                       : transfer.bytes;
}

/// The move has ended. True: it was the last one.
bool note_move(RmaTransfer& transfer) noexcept {
  const std::size_t bytes = piece_bytes(transfer);
  if (transfer.path == Path::staged) {
    transfer.leaving = !transfer.leaving;
    if (transfer.leaving) return false;
  }
  transfer.moved += bytes;
  return transfer.moved == transfer.bytes;
}

}  // namespace

RmaMover::RmaMover(Engine& engine)
    : engine_(engine),
      device_copier_(engine.service<DeviceCopier>()),
      stager_(engine),
      cpu_copier_(engine, [](RmaTransfer& transfer, Status status) noexcept {
        transfer.target.mover().moved(transfer, status);
      }) {}

void RmaMover::prepare(Peer& peer) {
  std::unique_ptr<Flusher>& flusher = flushers_[peer.rank.value];
  if (flusher) return;
  flusher = std::make_unique<Flusher>(
      engine_, peer, [](RmaTransfer& transfer, Status status) noexcept { transfer.target.ended(transfer, status); });
}

Status RmaMover::begin(RmaTransfer& transfer) noexcept {
  transfer.wire.on_complete = [](port::WireOp& op) noexcept {
    RmaTransfer& done = *static_cast<RmaTransfer::WireStep&>(op).owner;
    done.target.mover().engine_.note_wire_op(-1);
    done.target.mover().moved(done, op.status);
  };
  transfer.copy.done = [](StageCopy& copy, Status status) noexcept {
    RmaTransfer& done = *static_cast<RmaTransfer::CopyStep&>(copy).owner;
    if (done.path != Path::staged) done.path = copy.path;
    done.target.mover().moved(done, status);
  };
  if (transfer.path == Path::staged) {
    const Result<StagePool::Lease> lease = stager_.buffers().take(piece_bytes(transfer));
    if (!lease) return lease.status();
    transfer.lease = *lease;
  }
  return advance(transfer);
}

void RmaMover::release(RmaTransfer& transfer) noexcept { stager_.buffers().give_back(transfer.lease); }

bool RmaMover::withdraw(RmaTransfer& transfer) noexcept {
  if (retries_.linked(transfer)) {
    retries_.remove(transfer);
    return true;
  }
  return cpu_copier_.withdraw(transfer);
}

Status RmaMover::advance(RmaTransfer& transfer) noexcept {
  for (;;) {
    const Status status = start_move(transfer);
    if (status != Status::ok) return status;
    if (note_move(transfer)) return all_moved(transfer);
  }
}

Status RmaMover::start_move(RmaTransfer& transfer) noexcept {
  const RmaPlace from = shifted(transfer.from, transfer.moved);
  const RmaPlace to = shifted(transfer.to, transfer.moved);
  const std::size_t bytes = piece_bytes(transfer);
  if (transfer.path != Path::staged) return move(transfer, to, from, bytes);
  const RmaPlace stage{transfer.lease.data, MemoryKind::pinned};
  return transfer.leaving ? move(transfer, to, stage, bytes) : move(transfer, stage, from, bytes);
}

Status RmaMover::move(RmaTransfer& transfer, const RmaPlace& to, const RmaPlace& from, std::size_t bytes) noexcept {
  if (to.over_wire || from.over_wire) return over_wire(transfer, to, from, bytes);
  if (!host_accessible(to.kind) || !host_accessible(from.kind)) return copy_by_device(transfer, to, from, bytes);
  transfer.cpu = {static_cast<std::byte*>(to.address), static_cast<const std::byte*>(from.address), bytes};
  return cpu_copier_.start(transfer);
}

Status RmaMover::copy_by_device(RmaTransfer& transfer, const RmaPlace& to, const RmaPlace& from,
                                std::size_t bytes) noexcept {
  if (transfer.path == Path::staged) {
    const auto direction = transfer.leaving ? Stager::Direction::in : Stager::Direction::out;
    const Status status = stager_.start(direction, to.address, from.address, bytes, transfer.copy);
    return status == Status::ok ? Status::in_progress : status;
  }
  transfer.copy.alone = host_accessible(to.kind) || host_accessible(from.kind);
  transfer.path = device_copier_.start(to.address, from.address, bytes, transfer.copy, transfer.path);
  return Status::in_progress;
}

Status RmaMover::over_wire(RmaTransfer& transfer, const RmaPlace& to, const RmaPlace& from,
                           std::size_t bytes) noexcept {
  RmaTarget& target = transfer.target;
  if (target.peer().lost) return Status::peer_lost;
  port::RemoteMemory& memory = *engine_.wire().remote_memory();
  port::WireEndpoint* endpoint = target.peer().endpoint;
  const Status status = to.over_wire ? memory.put(endpoint, target.key(), to.remote_address,
                                                  ConstBuffer(from.address, bytes, from.kind), transfer.wire)
                                     : memory.get(endpoint, target.key(), from.remote_address,
                                                  Buffer(to.address, bytes, to.kind), transfer.wire);
  if (status == Status::in_progress) engine_.note_wire_op(+1);
  return status;
}

Status RmaMover::all_moved(RmaTransfer& transfer) noexcept {
  if (!transfer.to.over_wire || !transfer.wants_delivered) return Status::ok;
  transfer.source_is_free = true;
  return flushers_.at(transfer.target.peer().rank.value)->flush(transfer);
}

void RmaMover::moved(RmaTransfer& transfer, Status status) noexcept {
  if (status == Status::ok && transfer.target.peer().lost) status = Status::peer_lost;
  if (status == Status::ok) status = note_move(transfer) ? all_moved(transfer) : advance(transfer);
  go_on(transfer, status);
}

void RmaMover::go_on(RmaTransfer& transfer, Status status) noexcept {
  if (status == Status::in_progress) {
    if (transfer.source_is_free) engine_.report(transfer, Moment::source_free, {Status::ok, transfer.bytes});
  } else if (status == Status::limit_reached) {
    retries_.push_back(transfer);
    engine_.attach(static_cast<Poller&>(*this));
  } else {
    transfer.target.ended(transfer, status);
  }
}

unsigned RmaMover::poll() noexcept {
  engine_.detach(static_cast<Poller&>(*this));
  IntrusiveList<RmaTransfer, &RmaTransfer::retry_hook> these;
  while (RmaTransfer* transfer = retries_.pop_front()) these.push_back(*transfer);
  unsigned events = 0;
  while (RmaTransfer* transfer = these.pop_front()) {
    go_on(*transfer, advance(*transfer));
    ++events;
  }
  return events;
}

}  // namespace brant
