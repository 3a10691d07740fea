// How an endpoint's bytes leave and come: by tags of the network, or agreed upon over the link of the two processes.

#include <utility>

#include "ops/channel/endpoint.h"
#include "ops/channel/table.h"
#include "ops/channel/tag.h"

namespace brant {

Status ChannelEndpoint::carry(Transfer& transfer, const Buffer& bytes) noexcept {
  transfer.here = bytes;
  return linked_ ? link_sender_->send(transfer) : tag_send(transfer);
}

Status ChannelEndpoint::tag_send(Transfer& transfer) noexcept {
  transfer.become(TransferState::network);
  const tag::Type type = transfer.acknowledged ? tag::Type::channel_acknowledged : tag::Type::channel;
  const tag::Sender self{engine().job().rank, side_};
  const std::uint64_t tag = tag::channel(type, id_, self, transfer.number);
  return noted(engine().wire().tag_send(peer_.endpoint, tag, transfer.here, transfer.wire()));
}

Status ChannelEndpoint::tag_recv(Transfer& transfer, Buffer target) noexcept {
  transfer.become(TransferState::network);
  const tag::Sender other{peer_.rank.value, 1 - side_};
  const std::uint64_t tag = tag::channel(tag::Type::channel, id_, other, transfer.number);
  return noted(engine().wire().tag_recv(tag, tag::kChannelReceiveMask, target, transfer.wire()));
}

Status ChannelEndpoint::noted(Status posted) noexcept {
  if (posted == Status::in_progress) engine().note_wire_op(+1);
  return posted;
}

LinkMessage ChannelEndpoint::link_message(LinkMessage::Kind kind) const noexcept {
  LinkMessage message;
  message.kind = kind;
  message.from_side = static_cast<std::uint8_t>(side_);
  message.channel = id_.value;
  return message;
}

LinkMessage ChannelEndpoint::link_message(LinkMessage::Kind kind, const Transfer& transfer) const noexcept {
  LinkMessage message = link_message(kind);
  message.acknowledged = transfer.acknowledged;
  message.number = transfer.number;
  message.bytes = transfer.here.bytes;
  return message;
}

void ChannelEndpoint::on_link(const LinkMessage& message, std::span<const std::byte> payload) noexcept {
  switch (message.kind) {
    case LinkMessage::Kind::landing:
    case LinkMessage::Kind::declined: return link_sender_->on_landing(message);
    case LinkMessage::Kind::retract: return link_sender_->on_retract(message);
    case LinkMessage::Kind::taken: return link_sender_->on_taken(message);
    case LinkMessage::Kind::stream_mailbox:
    case LinkMessage::Kind::stream_base:
    case LinkMessage::Kind::stream_unmapped:
    case LinkMessage::Kind::stream_refused: return on_stream_record(message, payload);
    case LinkMessage::Kind::retracted: break;  // of any receive that was told
    default:
      if (!may_come(message.number)) [[unlikely]]
        return engine().distrust(peer_, "a record of a channel's message far beyond what it may send");
  }
  link_receiver_->on_message(message, payload);
}

bool ChannelEndpoint::network_takes(const Buffer& memory, std::uint64_t buffer_id) noexcept {
  if (!engine().wire().capabilities().takes(memory.kind)) return false;
  if (host_accessible(memory.kind) || memory.bytes == 0 || link_sender_ == nullptr) return true;
  return table_.pump(peer_).mappings().exports.network_may_map(memory.data, buffer_id);
}

Status ChannelEndpoint::take_move(Transfer& transfer) noexcept {
  if (transfer.move == nullptr) transfer.move = table_.moves().take(transfer, kMoveEvents);
  return transfer.move != nullptr ? Status::ok : Status::limit_reached;
}

Status ChannelEndpoint::lease_stage(Transfer& transfer, std::size_t bytes) noexcept {
  if (const Status taken = take_move(transfer); taken != Status::ok) return taken;
  const Result<StagePool::Lease> lease = table_.stages().take(bytes);
  if (lease) transfer.move->lease = *lease;
  return lease.status();
}

void ChannelEndpoint::end_move(Transfer& transfer) noexcept {
  if (transfer.move == nullptr) return;
  table_.stages().give_back(transfer.move->lease);
  table_.moves().give_back(std::exchange(transfer.move, nullptr));
}

Status ChannelEndpoint::stage_out(Transfer& transfer) noexcept {
  const std::size_t bytes = transfer.buffer.bytes;
  const Status leased = lease_stage(transfer, bytes);
  return leased == Status::ok ? stage(transfer, transfer.staged(bytes), transfer.buffer, bytes) : leased;
}

Status ChannelEndpoint::stage(Transfer& transfer, const Buffer& to, const Buffer& from, std::size_t bytes) noexcept {
  transfer.become(TransferState::staging);
  Move& move = *transfer.move;
  move.to = MoveEnd(to.data, to.kind);
  move.from = MoveEnd(from.data, from.kind);
  move.bytes = bytes;
  return table_.mover().start_staging(move);
}

void ChannelEndpoint::dismiss(Transfer& transfer) noexcept {
  engine().finish(transfer, {Status::canceled, 0});
  release(transfer);
}

bool ChannelEndpoint::send_early(Transfer& transfer, std::uint16_t slot) noexcept {
  return link_sender_->send_early(transfer, slot);
}

void ChannelEndpoint::ask_late(Transfer& transfer) noexcept { link_sender_->ask_late(transfer); }

void ChannelEndpoint::landed_early(Transfer& transfer, std::size_t bytes, bool acknowledged) noexcept {
  link_receiver_->on_landed_early(transfer, bytes, acknowledged);
}

}  // namespace brant
