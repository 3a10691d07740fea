#include "ops/channel/moves.h"

#include <cstring>
#include <utility>

#include "base/copy_small.h"
#include "base/log.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/shaped.h"
#include "ops/channel/table.h"

namespace brant {

Status ChannelMoves::take(Transfer& transfer) noexcept {
  ChannelPools& pools = end_.table().pools();
  if (transfer.move == nullptr) transfer.move = pools.moves.take(transfer, kEvents);
  return transfer.move != nullptr ? Status::ok : pools.moves.refusal();
}

bool ChannelMoves::source_is_gone(const Transfer& transfer) const noexcept {
  if (transfer.buffer_id == 0 || host_accessible(transfer.here.kind)) return false;
  const Result<port::PointerInfo> info = end_.engine().device().query(transfer.here.data);
  return !info || info->buffer_id != transfer.buffer_id;
}

void ChannelMoves::end_without_source(Transfer& transfer) noexcept {
  log::error(
      "channel {} to rank {}: message {}, {} bytes of {} memory at {}, was freed before it was sent. Keep the source "
      "until source_free",
      end_.id().value, end_.peer().rank.value, transfer.number, transfer.here.bytes,
      memory_kind_name(transfer.here.kind), transfer.here.data);
  end_.carried(transfer, Status::invalid_argument);
}

Status ChannelMoves::start(Transfer& transfer, TransferState as, Copy copy) noexcept {
  if (const Status taken = take(transfer); taken != Status::ok) return taken;
  TransferMove& move = *transfer.move;
  move.to = copy.to;
  move.from = copy.from;
  move.bytes = copy.bytes;
  move.shapes = copy.shapes;
  move.path = copy.path;
  move.mapped = std::move(copy.mapped);
  move.signal = copy.signal;
  Mover& mover = end_.table().mover();
  // What goes by way of the pinned buffer that the transfer has needs none of the mover's.
  const bool stages = as == TransferState::staging && copy.path == Path::automatic;
  const Status status = stages ? mover.start_staging(move) : mover.start(move);
  if (status == Status::ok || status == Status::in_progress) transfer.become(as);
  return status;
}

Status ChannelMoves::lease_stage(Transfer& transfer, std::size_t bytes) noexcept {
  if (const Status taken = take(transfer); taken != Status::ok) return taken;
  const Result<StagePool::Lease> lease = end_.table().stages().take(bytes);
  if (!lease) return lease.status();
  transfer.move->lease = *lease;
  return Status::ok;
}

void ChannelMoves::give_back(Transfer& transfer) noexcept {
  if (transfer.move == nullptr) return;
  end_.table().stages().give_back(transfer.move->lease);
  if (transfer.move->own_shape != nullptr) end_.table().pools().shapes.give_back(transfer.move->own_shape);
  end_.table().pools().moves.give_back(std::exchange(transfer.move, nullptr));
}

Status ChannelMoves::land(Transfer& transfer, std::span<const std::byte> message) noexcept {
  const Buffer target = transfer.here;
  if (message.size() > target.bytes) return Status::truncated;
  if (message.empty()) return Status::ok;
  if (transfer.here_is_shaped()) {
    copy_in(transfer, 0, message);
  } else if (host_accessible(target.kind)) {
    copy_small(target.data, message.data(), message.size());
  } else {
    const Status leased = lease_stage(transfer, message.size());
    if (leased != Status::ok) return leased;
    std::memcpy(transfer.staged(0).data, message.data(), message.size());  // the end copies it to the device
  }
  return Status::ok;
}

bool ChannelMoves::needs_stage(Transfer& transfer) noexcept {
  if (transfer.own_shape() != nullptr) return shape_needs_stage(transfer);
  if (host_accessible(transfer.buffer.kind) || transfer.buffer.bytes == 0 || end_.matched_here()) return false;
  const bool by_network = transfer.path == Path::ucx && (transfer.is_send || !end_.linked());
  if (by_network && !end_.network().takes(transfer.buffer, transfer.buffer_id)) transfer.path = Path::staged;
  return transfer.path == Path::staged;
}

Status ChannelMoves::stage_out(Transfer& transfer) noexcept {
  const std::size_t bytes = transfer.buffer.bytes;
  const Status leased = lease_stage(transfer, bytes);
  return leased == Status::ok ? stage(transfer, transfer.staged(bytes), transfer.buffer) : leased;
}

bool ChannelMoves::stop_staging(Transfer& transfer) noexcept { return end_.table().mover().withdraw(*transfer.move); }

Status ChannelMoves::stage_in(Transfer& transfer, std::size_t bytes) noexcept {
  return stage(transfer, Buffer(transfer.buffer.data, bytes, transfer.buffer.kind), transfer.staged(bytes));
}

/// Between memory of the user and the pinned buffer of a transfer; of one size.
Status ChannelMoves::stage(Transfer& transfer, const Buffer& to, const Buffer& from) noexcept {
  Copy copy{MoveEnd(to.data, to.kind), MoveEnd(from.data, from.kind), from.bytes, transfer.own_shape()};
  if (copy.shapes != nullptr) copy.path = host_accessible(transfer.buffer.kind) ? Path::shm : Path::copy_engine;
  return start(transfer, TransferState::staging, std::move(copy));
}

const MoveEvents ChannelMoves::kEvents{[](Move& move, Status status) noexcept {
                                         Transfer& transfer = static_cast<TransferMove&>(move).transfer;
                                         transfer.endpoint.moves().ended(transfer, status);
                                       },
                                       nullptr};

void ChannelMoves::ended(Transfer& transfer, Status status) noexcept {
  if (transfer.state() == TransferState::pulling) return end_.link_receiver()->on_pulled(transfer);
  if (!transfer.is_send) return end_.receives().copied(transfer, status);
  if (status == Status::ok && end_.peer().lost) status = Status::peer_lost;
  if (transfer.state() != TransferState::copying) return end_.sends().staged(transfer, status);
  end_.local() != nullptr ? end_.local()->copied(transfer, status) : end_.link_sender()->copied(transfer, status);
}

}  // namespace brant
