// Messages that one end cannot send or take after both ends count on them: the other end is told, the receive and the
// send end with a status, and the next message gets its turn.

#include <algorithm>
#include <new>

#include "base/log.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/table.h"

namespace brant {

// At the sender
// -------------------------------------------------------------------------------------------------------------------

void ChannelEndpoint::fail_send(Transfer& transfer, Status status) noexcept {
  // Who rejected or truncated it knows, and a lost peer waits for nothing.
  const bool known = status == Status::ok || status == Status::truncated || status == Status::peer_lost ||
                     transfer.outcome == Status::peer_rejected;
  if (!known && linked_) {
    link_sender_->tell_not_sent(transfer, status);
  } else if (!known) {
    send_control(ChannelControl::Kind::not_sent, transfer.number, status);
  }
  end_send(transfer, status);
}

Transfer* ChannelEndpoint::find_under_way(std::uint64_t number) noexcept {
  Transfer* transfer = under_way_.front();
  while (transfer != nullptr && transfer->number != number) transfer = under_way_.next(*transfer);
  return transfer;
}

void ChannelEndpoint::on_not_received(std::uint64_t number, Status status) noexcept {
  Transfer* transfer = find_under_way(number);
  if (transfer == nullptr) return;
  const bool asks = transfer->state() == TransferState::asking && link_sender_->withdraw(*transfer);
  if (asks || transfer->state() == TransferState::awaiting_ack) {
    end_send(*transfer, status);
  } else {
    transfer->outcome = status;
  }
}

// At the receiver
// -------------------------------------------------------------------------------------------------------------------

void ChannelEndpoint::on_not_sent(std::uint64_t number, std::uint64_t bytes, Status why) noexcept {
  if (landed_.has(number)) {  // nobody wants it
    if (Transfer* drain = find_with_network(number, true)) engine_.wire().cancel(drain->wire());
    return;
  }
  if (why != Status::canceled) {
    log::error("channel {} from rank {}: message {} of {} bytes could not be sent there ({}); that rank says why",
               id_.value, peer_.rank.value, number, bytes, status_text(why));
  }
  const LostMessage message{number, bytes, why == Status::canceled ? why : Status::peer_rejected, true};
  if (linked_ && link_receiver_->end_lost(message)) return;
  Transfer* transfer = find_with_network(number);
  if (transfer == nullptr) return remember_lost(message);
  transfer->lost = true;
  transfer->sender_knows = true;
  if (transfer->outcome == Status::ok) {
    transfer->outcome = message.status;
    if (!hidden_) ++traffic_.withdrawing;
  }
  engine_.wire().cancel(transfer->wire());
}

void ChannelEndpoint::tell_not_taken(std::uint64_t number) noexcept {
  send_control(ChannelControl::Kind::not_taken, number, Status::canceled);
}

Transfer* ChannelEndpoint::find_receive(std::uint64_t number, bool drains) noexcept {
  if (idle()) return nullptr;  // without a look at what the peer's other channels wait for
  for (PeerOp* op = peer_.outstanding.front(); op != nullptr; op = decltype(peer_.outstanding)::next(*op)) {
    if (op->lost != &ChannelEndpoint::on_lost) continue;
    auto& receive = static_cast<ChannelOp&>(*op);
    if (&receive.endpoint != this || receive.form != ChannelOp::Form::receive || receive.number != number) continue;
    auto& transfer = static_cast<Transfer&>(receive);
    if (transfer.drains == drains && !transfer.ghost) return &transfer;
  }
  return nullptr;
}

Transfer* ChannelEndpoint::find_with_network(std::uint64_t number, bool drains) noexcept {
  Transfer* transfer = find_receive(number, drains);
  const bool with_network = transfer != nullptr && transfer->state() == TransferState::network && !transfer->consumed;
  return with_network ? transfer : nullptr;
}

void ChannelEndpoint::remember_lost(const LostMessage& message) noexcept {
  if (find_lost(message.number) != lost_.end()) return;
  if (lost_.size() == kWindowMessages) return refuse(Status::internal);  // more than the other end may have under way
  try {
    lost_.push_back(message);
  } catch (const std::bad_alloc&) {
    refuse(Status::no_memory);
  }
}

std::vector<LostMessage>::iterator ChannelEndpoint::find_lost(std::uint64_t number) noexcept {
  return std::find_if(lost_.begin(), lost_.end(), [&](const LostMessage& message) { return message.number == number; });
}

bool ChannelEndpoint::take_lost(Transfer& transfer, Status& status) noexcept {
  const auto found = find_lost(transfer.number);
  if (found == lost_.end()) return false;
  transfer.wire().bytes = found->bytes;
  transfer.lost = true;
  transfer.sender_knows = found->sender_knows;
  status = found->status;
  lost_.erase(found);
  return true;
}

}  // namespace brant
