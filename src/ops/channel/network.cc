#include "ops/channel/network.h"

#include "ops/channel/endpoint.h"
#include "ops/channel/table.h"
#include "ops/channel/tag.h"

namespace brant {
namespace {

/// A receive has ended so: its message had come, could not be put into the landing, and does not come again.
bool is_of_its_message(Status status) noexcept {
  return status != Status::ok && status != Status::truncated && status != Status::canceled &&
         status != Status::peer_lost;
}

}  // namespace

Status ChannelNetwork::send(Transfer& transfer) noexcept {
  transfer.become(TransferState::network);
  const tag::Type type = transfer.acknowledged ? tag::Type::channel_acknowledged : tag::Type::channel;
  const tag::Sender self{end_.peer().rank_there, end_.side()};
  const std::uint64_t tag = tag::channel(type, end_.id(), self, transfer.number);
  transfer.wire().on_complete = &ChannelNetwork::on_done;
  return noted(end_.engine().wire().tag_send(end_.peer().endpoint, tag, transfer.here, transfer.wire()));
}

Status ChannelNetwork::receive(Transfer& transfer, Buffer target) noexcept {
  transfer.become(TransferState::network);
  const tag::Sender other{end_.peer().rank.value, 1 - end_.side()};
  const std::uint64_t tag = tag::channel(tag::Type::channel, end_.id(), other, transfer.number);
  transfer.wire().on_complete = &ChannelNetwork::on_done;
  return noted(end_.engine().wire().tag_recv(tag, tag::kChannelReceiveMask, target, transfer.wire()));
}

/// Tells the engine that the network works for us.
Status ChannelNetwork::noted(Status posted) noexcept {
  if (posted == Status::in_progress) end_.engine().progress().note_wire_op(+1);
  return posted;
}

void ChannelNetwork::on_done(port::WireOp& wire) noexcept {
  Transfer& transfer = Transfer::of(wire);
  transfer.endpoint.engine().progress().note_wire_op(-1);
  if (!transfer.is_send && is_of_its_message(wire.status)) transfer.lost = true;
  transfer.endpoint.carried(transfer);
}

void ChannelNetwork::withdraw(Transfer& receive, Status why) noexcept {
  port::Wire& wire = end_.engine().wire();
  if (why == Status::peer_lost) {
    wire.abandon(receive.wire());
  } else if (!receive.observed()) {
    wire.take_back(receive.wire());  // its owner may free the landing the next moment
  } else {
    wire.cancel(receive.wire());
  }
}

void ChannelNetwork::cancel(Transfer& transfer) noexcept { end_.engine().wire().cancel(transfer.wire()); }

bool ChannelNetwork::takes(const Buffer& memory, std::uint64_t buffer_id) noexcept {
  if (!end_.engine().wire().capabilities().takes(memory.kind)) return false;
  if (host_accessible(memory.kind) || memory.bytes == 0 || end_.link_sender() == nullptr) return true;
  return end_.table().pump(end_.peer()).mappings().exports.network_may_map(memory.data, buffer_id);
}

}  // namespace brant
