#include "ops/channel/endpoint.h"

#include <utility>

#include "base/log.h"
#include "ops/channel/reserved_ids.h"
#include "ops/channel/table.h"

namespace brant {

ChannelEndpoint::ChannelEndpoint(ChannelTable& table, Peer& peer, ChannelId id, unsigned side, Path forced)
    : table_(table),
      engine_(table.engine()),
      peer_(peer),
      shared_(table.with(peer)),
      id_(id),
      side_(side),
      hidden_(id.value >= reserved_id::kDataLanes),
      paths_(*this),
      records_(*this),
      network_(*this),
      moves_(*this),
      sends_(*this),
      receives_(*this),
      closing_(*this) {
  use_link(forced);
}

ChannelEndpoint::~ChannelEndpoint() { table_.keep(*this); }

void ChannelEndpoint::use_link(Path forced) {
  if (peer_.link != nullptr && link_sender_ == nullptr) {
    LinkPump& pump = table_.pump(peer_);
    auto sender = std::make_unique<LinkSender>(*this, pump);
    link_receiver_ = std::make_unique<LinkReceiver>(*this, pump);
    link_sender_ = std::move(sender);
    mutual_kind_ = engine_.peers().mutual_kind(peer_);
  }
  if (peer_.same_process && local_ == nullptr) local_ = std::make_unique<LocalMatcher>(*this);
  linked_ = link_sender_ != nullptr && forced != Path::ucx;
  matched_here_ = local_ != nullptr && forced != Path::ucx;
  paths_.force(forced);
}

void ChannelEndpoint::reopen(Path forced) {
  use_link(forced);
  closing_.reopen();
  refused_ = Status::ok;
}

void ChannelEndpoint::refuse(Status status) noexcept {
  if (refused_ != Status::ok) return;
  refused_ = status;
  records_.withdraw(status);
}

ChannelCounts ChannelEndpoint::counts() const noexcept {
  ChannelCounts counts;
  counts.received = receives_.count();
  sends_.count_into(counts);
  return counts;
}

ChannelEnd ChannelEndpoint::account() noexcept {
  ChannelEnd end;
  end.channel = id_.value;
  end.side = side_;
  end.rank = peer_.rank_there;
  end.peer = peer_.rank.value;
  end.next_send = sends_.next_number();
  end.first_sending = sends_.first_pending().value_or(ChannelEnd::kNone);
  end.next_receive = receives_.turns().first_free();
  end.first_receiving = receives_.first_pending().value_or(ChannelEnd::kNone);
  return end;
}

Status ChannelEndpoint::failed_status(const Transfer& transfer, Status status) noexcept {
  if (peer_.lost) return Status::peer_lost;
  if (status == Status::io_error || status == Status::peer_lost) {
    // The network may notice a death before the process table shows it, and cannot use the connection any more either
    // way.
    engine_.peers().suspect(peer_);
    return Status::peer_lost;
  }
  return transfer.outcome != Status::ok ? transfer.outcome : status;
}

void ChannelEndpoint::carried(Transfer& transfer) noexcept {
  transfer.become(TransferState::carried);
  if (transfer.drains) return records_.give_back(transfer);
  transfer.is_send ? sends_.carried(transfer) : receives_.carried(transfer);
}

// Between the two ends
// ---------------------------------------------------------------------------------------------------------------------

void ChannelEndpoint::send_control(ChannelControl::Kind kind, std::uint64_t number, Status status,
                                   std::uint32_t linked) noexcept {
  table_.controls().send(shared_, {kind, static_cast<std::uint16_t>(side_), id_.value, peer_.rank_there, linked,
                                   receives_.told_prefix(), number, status});
}

/// Of messages that this end has sent, or that the other one may.
bool ChannelEndpoint::is_possible(const ChannelControl& control) const noexcept {
  using Kind = ChannelControl::Kind;
  const bool of_ours = control.kind == Kind::truncated || control.kind == Kind::not_taken;
  const bool of_theirs = control.kind == Kind::not_sent || control.kind == Kind::abandoned;
  return control.prefix <= sends_.begun() && (!of_ours || sends_.has_begun(control.number)) &&
         (!of_theirs || receives_.may_come(control.number));
}

void ChannelEndpoint::on_control(const ChannelControl& control) noexcept {
  if (!is_possible(control)) [[unlikely]]
    return engine_.peers().distrust(peer_, "a control message about channel messages that there cannot be");
  switch (control.kind) {
    case ChannelControl::Kind::truncated:
      sends_.note_truncated(control.number);
      sends_.on_not_received(control.number, Status::truncated);
      break;
    case ChannelControl::Kind::not_taken: sends_.on_not_taken(control.number, control.status); break;
    case ChannelControl::Kind::not_sent: receives_.on_not_sent(control.number, 0, control.status); break;
    case ChannelControl::Kind::abandoned: receives_.on_abandoned(control.number); break;
    case ChannelControl::Kind::closed: closing_.on_closed(control.linked, control.number); break;
    default: break;
  }
  sends_.on_acknowledged(control.prefix);
  closing_.look();
}

void ChannelEndpoint::on_link(const LinkMessage& message, std::span<const std::byte> payload) noexcept {
  switch (message.kind) {
    case LinkMessage::Kind::landing:
    case LinkMessage::Kind::declined: return link_sender_->on_landing(message);
    case LinkMessage::Kind::retract: return link_sender_->on_retract(message);
    case LinkMessage::Kind::taken: return link_sender_->on_taken(message);
    case LinkMessage::Kind::retracted: break;  // of any receive that was told
    default:
      if (!receives_.may_come(message.number)) [[unlikely]]
        return engine_.peers().distrust(peer_, "a record of a channel's message far beyond what it may send");
  }
  link_receiver_->on_message(message, payload);
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

}  // namespace brant
