#include "ops/channel/records.h"

#include <cassert>
#include <utility>

#include "base/log.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/table.h"

namespace brant {

void ChannelPools::tell_limit() noexcept {
  if (std::exchange(limit_told, true)) return;
  log::warn(
      "{} sends and receives are under way in this process, and no more can be: "
      "a post returns limit_reached until some have ended. Call progress, and post receives before their messages",
      live());
}

ChannelRecords::ChannelRecords(ChannelEndpoint& end) noexcept
    : end_(end), engine_(end.engine()), traffic_(end.table().traffic()), pools_(end.table().pools()) {}

Transfer* ChannelRecords::take(bool is_send) noexcept {
  Transfer* transfer = pools_.transfers.take(end_, is_send);
  if (transfer == nullptr) [[unlikely]] {
    if (pools_.transfers.refusal() == Status::limit_reached) pools_.tell_limit();
    return nullptr;
  }
  note_begun(*transfer);
  return transfer;
}

void ChannelRecords::give_back(Transfer& transfer) noexcept {
  assert(!transfer.endpoint_hook.linked() && !transfer.link_hook.linked() && !transfer.watch_hook.linked() &&
         "a record that is given back waits for nothing");
  if (engine_.trace() != nullptr) trace(transfer);
  if (!end_.hidden()) {
    if (transfer.is_send) {
      --traffic_.sending;
    } else if (transfer.outcome != Status::ok) {
      --traffic_.withdrawing;
    }
  }
  end_.peer().remove_outstanding(transfer);
  end_.moves().give_back(transfer);
  const bool was_send = transfer.is_send;
  pools_.transfers.give_back(&transfer);
  note_ended(was_send);
}

void ChannelRecords::trace(const Transfer& transfer) noexcept {
  engine_.trace()->add_transfer(transfer.is_send ? "channel send" : "channel receive", transfer.path,
                                end_.peer().rank.value, transfer.posted_at,
                                transfer.is_send ? transfer.buffer.bytes : transfer.wire().bytes);
}

/// Null if it is another end's, or another layer's.
ChannelOp* ChannelRecords::own(PeerOp& op) noexcept {
  ChannelOp* record = op_of(op);
  return record != nullptr && &record->endpoint == &end_ ? record : nullptr;
}

Transfer* ChannelRecords::find_receive(std::uint64_t number, bool drains) noexcept {
  if (none()) return nullptr;  // without a look at what the peer's other channels wait for
  Peer& peer = end_.peer();
  for (PeerOp* op = peer.outstanding.front(); op != nullptr; op = decltype(peer.outstanding)::next(*op)) {
    ChannelOp* receive = own(*op);
    if (receive == nullptr || receive->form != ChannelOp::Form::receive || receive->number != number) continue;
    auto& transfer = static_cast<Transfer&>(*receive);
    if (transfer.drains == drains && !transfer.ghost) return &transfer;
  }
  return nullptr;
}

std::size_t ChannelRecords::withdraw(Status why, std::uint64_t first) noexcept {
  std::size_t withdrawn = end_.sends().withdraw_waiting(why);
  Peer& peer = end_.peer();
  // What the peer's other channels wait for may be much.
  std::size_t left = live_;
  for (PeerOp* op = peer.outstanding.front(); op != nullptr && left != 0;) {
    PeerOp* following = decltype(peer.outstanding)::next(*op);
    if (ChannelOp* pending = own(*op)) {
      --left;
      if (pending->is_send || pending->number >= first) {
        withdraw(*pending, why);
        ++withdrawn;
      }
    }
    op = following;
  }
  return withdrawn;
}

void ChannelRecords::withdraw(ChannelOp& op, Status why) noexcept {
  switch (op.form) {
    case ChannelOp::Form::send: return end_.sends().withdraw(static_cast<Transfer&>(op), why);
    case ChannelOp::Form::receive: return end_.receives().withdraw(static_cast<Transfer&>(op), why);
    case ChannelOp::Form::small_receive: return end_.receives().small().withdraw(static_cast<SmallReceive&>(op), why);
  }
}

void ChannelRecords::on_lost(PeerOp& op) noexcept {
  auto& lost = static_cast<ChannelOp&>(op);
  lost.endpoint.records().withdraw(lost, Status::peer_lost);
}

void ChannelRecords::on_cancel(OpOwner& owner) noexcept {
  auto& canceled = static_cast<ChannelOp&>(owner);
  ChannelEndpoint& end = canceled.endpoint;
  const bool given_up_late = end.closing().closed() && canceled.is_send && !canceled.observed();
  given_up_late ? end.closing().give_up_late(static_cast<Transfer&>(canceled))
                : end.records().withdraw(canceled, Status::canceled);
}

}  // namespace brant
