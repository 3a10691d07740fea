#include "ops/channel/endpoint.h"

#include <algorithm>

#include "base/log.h"
#include "ops/channel/reserved_ids.h"
#include "ops/channel/table.h"
#include "ops/channel/tag.h"

namespace brant {
ChannelEndpoint::ChannelEndpoint(ChannelTable& table, Peer& peer, ChannelId id, unsigned side, Path forced) noexcept
    : table_(table),
      engine_(table.engine()),
      traffic_(table.traffic()),
      peer_(peer),
      id_(id),
      side_(side),
      hidden_(id.value >= reserved_id::kDataLanes),
      forced_(forced) {
  watch_.end = this;
  watch_.lost = [](PeerOp& self) noexcept { static_cast<Watch&>(self).end->look_if_closed(); };
  use_link();
}

void ChannelEndpoint::use_link() noexcept {
  if (peer_.link != nullptr && link_sender_ == nullptr) {
    LinkPump& pump = table_.pump(peer_);
    link_sender_ = std::make_unique<LinkSender>(*this, pump);
    link_receiver_ = std::make_unique<LinkReceiver>(*this, pump);
    mutual_kind_ = engine_.mutual_kind(peer_);
  }
  linked_ = link_sender_ != nullptr && forced_ != Path::ucx;
  last_choice_ = {};
}

ChannelCounts ChannelEndpoint::counts() const noexcept {
  ChannelCounts counts = counts_;
  counts.waiting = waiting_count_;
  return counts;
}

Status ChannelEndpoint::choose(MemoryKind kind, std::size_t bytes, Path& path, bool mapped) noexcept {
  PathQuery query;
  query.kind = kind;
  query.bytes = bytes;
  query.locality = peer_.same_process ? Locality::same_process
                   : peer_.same_host  ? Locality::same_host
                                      : Locality::other_host;
  query.shm_open = linked_;
  query.mapped_source = mapped;
  query.peer_maps = linked_ && kind == mutual_kind_;
  if (query.peer_maps) query.courier_bytes = table_.mover().courier_bytes();
  query.wire_takes_kind = engine_.wire().capabilities().takes(kind);
  query.forced = forced_;
  if (query != last_query_ || last_choice_.path == Path::automatic) {
    last_choice_ = choose_path(query, engine_.path_order());
    last_query_ = query;
  }
  const PathChoice& choice = last_choice_;
  path = choice.path;
  if (choice.status != Status::ok) {
    log::error(
        "channel {} to rank {}: path {} cannot carry {} bytes of {} memory: {}. Use BRANT_PATH=auto or another path",
        id_.value, peer_.rank.value, path_name(choice.path), bytes, memory_kind_name(kind), choice.reason);
  }
  return choice.status;
}

Status ChannelEndpoint::path_of(ConstBuffer source, Path& path) noexcept {
  const Status known = engine_.resolve_kind(source.data, source.bytes, source.kind);
  if (known != Status::ok) return known;
  const bool mapped = linked_ && host_accessible(source.kind) && link_sender_->can_offer(source);
  return choose(source.kind, source.bytes, path, mapped);
}

Transfer* ChannelEndpoint::take_transfer(bool is_send) noexcept {
  Transfer* transfer = table_.transfers().take(*this, is_send);
  if (transfer == nullptr) [[unlikely]] {
    table_.tell_transfers_limit();
    return nullptr;
  }
  note_begun(*transfer);
  transfer->wire().on_complete = &ChannelEndpoint::on_wire_done;
  return transfer;
}

void ChannelEndpoint::note_ended_late(bool was_send) noexcept {
  if (was_send && !in_use_) table_.source_patience().heard_from(peer_.rank.value);
  settle();
}

void ChannelEndpoint::trace(const Transfer& transfer) noexcept {
  engine_.trace()->add_transfer(transfer.is_send ? "channel send" : "channel receive", transfer.path, peer_.rank.value,
                                transfer.posted_at, transfer.is_send ? transfer.buffer.bytes : transfer.wire().bytes);
}

void ChannelEndpoint::release(Transfer& transfer) noexcept {
  if (engine_.trace() != nullptr) trace(transfer);
  ChannelTraffic& traffic = traffic_;
  if (!hidden_) {
    if (transfer.is_send) {
      --traffic.sending;
    } else if (transfer.outcome != Status::ok) {
      --traffic.withdrawing;
    }
  }
  engine_.remove_outstanding(peer_, transfer);
  end_move(transfer);
  const bool was_send = transfer.is_send;
  table_.transfers().give_back(&transfer);
  note_ended(was_send);
}

void ChannelEndpoint::attach(Transfer& transfer, Op& op) noexcept {
  transfer.own(engine_, op);
  engine_.add_outstanding(peer_, transfer);
}

Status ChannelEndpoint::final_status(const Transfer& transfer, Status status) noexcept {
  if (status == Status::ok || status == Status::truncated) return status;
  if (peer_.lost) return Status::peer_lost;
  if (status == Status::io_error || status == Status::peer_lost) {
    // The network may notice a death before the process table shows it, and cannot use the connection any more either
    // way.
    engine_.suspect(peer_);
    return Status::peer_lost;
  }
  return transfer.outcome != Status::ok ? transfer.outcome : status;
}

// Sends
// ------------------------------------------------------------------------------------------------------------------------

Status ChannelEndpoint::post_send(ConstBuffer source, Op& op) noexcept {
  op.result = {Status::ok, 0};
  Path path = Path::automatic;
  std::uint64_t buffer_id = 0;
  Status status = engine_.resolve_kind(source.data, source.bytes, source.kind, &buffer_id);
  // A window of messages goes on its way while it is being posted, and not in the first progress after that.
  if (linked_ && status == Status::ok && !host_accessible(source.kind)) link_sender_->look_for_landing(window_.next());
  if (refused_ != Status::ok) return refused_;
  if (peer_.lost || peer_.ended) return Status::peer_lost;
  if (status == Status::ok) status = choose_again(source.kind, source.bytes, path);
  if (status != Status::ok) return status;
  const bool room = waiting_.empty() && window_.has_room(source.bytes);
  if (room && path == Path::shm && op.delivered.fire == nullptr && send_at_once(source)) {
    op.result.bytes = source.bytes;
    return Status::ok;
  }
  Transfer* transfer = take_transfer(true);
  if (transfer == nullptr) return Status::limit_reached;
  transfer->buffer = Buffer(const_cast<void*>(source.data), source.bytes, source.kind);
  transfer->path = path;
  transfer->buffer_id = buffer_id;
  transfer->acknowledged = op.delivered.fire != nullptr;
  count_posted(1);
  if (!room) {
    transfer->become(TransferState::held_back);
    waiting_.push_back(*transfer);
    ++waiting_count_;
    attach(*transfer, op);
    return Status::in_progress;
  }
  status = begin_send(*transfer);
  if (status == Status::in_progress) {
    attach(*transfer, op);
    return status;
  }
  if (status == Status::ok || status == Status::truncated) {
    count_send(transfer->path, source.bytes);
    op.result.bytes = source.bytes;
    if (status == Status::ok && transfer->acknowledged) {
      attach(*transfer, op);
      transfer->become(TransferState::awaiting_ack);
      engine_.report(*transfer, Moment::source_free, {Status::ok, source.bytes});
      return Status::in_progress;
    }
    under_way_.remove(*transfer);
  } else {
    count_posted(-1);
  }
  release(*transfer);
  return status;
}

/// A small message of host memory leaves within the post, and no record of it is made. The window has room for it;
/// false: it goes another way, or the link has no room.
bool ChannelEndpoint::send_at_once(ConstBuffer source) noexcept {
  if (!linked_ || source.bytes >= kOfferedBytes || !host_accessible(source.kind)) return false;
  if (engine_.trace() != nullptr || !link_sender_->send_at_once(window_.next(), source)) return false;
  static_cast<void>(window_.take(source.bytes));
  ++counts_.sent;
  ++traffic_.moves;
  count_posted(1);
  count_send(Path::shm, source.bytes);
  return true;
}

/// Device memory of the path staged, or that the network was to take and cannot now.
bool ChannelEndpoint::goes_through_stage(Transfer& transfer) noexcept {
  if (host_accessible(transfer.buffer.kind) || transfer.buffer.bytes == 0) return false;
  const bool by_network = transfer.path == Path::ucx && (transfer.is_send || !linked_);
  if (by_network && !network_takes(transfer.buffer, transfer.buffer_id)) transfer.path = Path::staged;
  return transfer.path == Path::staged;
}

Status ChannelEndpoint::begin_send(Transfer& transfer) noexcept {
  transfer.number = window_.take(transfer.buffer.bytes);
  under_way_.push_back(transfer);
  Status status = Status::ok;
  if (goes_through_stage(transfer)) {
    status = stage_out(transfer);
  } else {
    status = carry(transfer, transfer.buffer);
  }
  if (status != Status::ok && status != Status::in_progress && status != Status::truncated) {
    window_.give_back_last();
    under_way_.remove(transfer);
    return status;
  }
  if (status == Status::ok) transfer.become(TransferState::carried);
  ++counts_.sent;
  return status;
}

/// Once it has gone: only then it is certain by which path.
void ChannelEndpoint::count_send(Path path, std::uint64_t bytes) noexcept {
  PathTally& tally = engine_.counters().path(path);
  tally.sends.add();
  tally.bytes_sent.add(bytes);
}

void ChannelEndpoint::count_outcome(Status status) noexcept { engine_.count_outcome(status); }

void ChannelEndpoint::count_posted(int sign) noexcept {
  if (!hidden_) traffic_.sent += static_cast<std::uint64_t>(sign);
}

bool ChannelEndpoint::source_freed(Transfer& transfer) noexcept {
  transfer.become(TransferState::carried);
  const bool waits = transfer.acknowledged && transfer.number >= window_.acknowledged();
  if (!waits) {
    end_send(transfer, Status::ok);
    return true;
  }
  transfer.become(TransferState::awaiting_ack);
  engine_.report(transfer, Moment::source_free, {Status::ok, transfer.buffer.bytes});
  return false;
}

void ChannelEndpoint::end_send(Transfer& transfer, Status status) noexcept {
  under_way_.remove(transfer);
  engine_.finish(transfer, {status, transfer.buffer.bytes});
  release(transfer);
}

void ChannelEndpoint::start_waiting() noexcept {
  while (Transfer* transfer = waiting_.front()) {
    if (!window_.has_room(transfer->buffer.bytes)) return;
    waiting_.remove(*transfer);
    --waiting_count_;
    transfer->become(TransferState::begun);
    const Status status = peer_.lost ? Status::peer_lost : begin_send(*transfer);
    if (status == Status::in_progress) continue;
    if (status == Status::ok || status == Status::truncated) count_send(transfer->path, transfer->buffer.bytes);
    if (status == Status::ok) {
      source_freed(*transfer);
      continue;
    }
    if (status == Status::truncated) {
      end_send(*transfer, status);
      continue;
    }
    count_posted(-1);
    engine_.finish(*transfer, {status, 0});
    release(*transfer);
  }
}

void ChannelEndpoint::acknowledge_sends(std::uint64_t prefix) noexcept {
  window_.acknowledge(prefix);
  for (Transfer* transfer = under_way_.front(); transfer != nullptr && transfer->number < prefix;) {
    Transfer* following = under_way_.next(*transfer);
    // Still on the wire: its completion is on the way and finds the acknowledgement in the window.
    if (transfer->state() == TransferState::awaiting_ack) end_send(*transfer, Status::ok);
    transfer = following;
  }
  start_waiting();
}

void ChannelEndpoint::note_truncated(std::uint64_t number) noexcept {
  ++counts_.truncated;
  log::warn("channel {} to rank {}: message {} was longer than the receive buffer there and was truncated", id_.value,
            peer_.rank.value, number);
}

/// Of messages that this end has sent, or that the other one may.
bool ChannelEndpoint::is_possible(const ChannelControl& control) const noexcept {
  using Kind = ChannelControl::Kind;
  const bool of_ours = control.kind == Kind::truncated || control.kind == Kind::not_taken;
  const bool of_theirs = control.kind == Kind::not_sent || control.kind == Kind::abandoned;
  return control.prefix <= window_.next() && (!of_ours || has_sent(control.number)) &&
         (!of_theirs || may_come(control.number));
}

void ChannelEndpoint::on_control(const ChannelControl& control) noexcept {
  if (!is_possible(control)) [[unlikely]]
    return engine_.distrust(peer_, "a control message about channel messages that there cannot be");
  switch (control.kind) {
    case ChannelControl::Kind::truncated:
      note_truncated(control.number);
      on_not_received(control.number, Status::truncated);
      break;
    case ChannelControl::Kind::not_taken:
      if (control.status == Status::canceled) {  // both ends are closed
        on_not_received(control.number, Status::canceled);
        break;
      }
      log::error("channel {} to rank {}: message {} could not be received there ({}); that rank says why", id_.value,
                 peer_.rank.value, control.number, status_text(control.status));
      on_not_received(control.number, Status::peer_rejected);
      break;
    case ChannelControl::Kind::not_sent: on_not_sent(control.number, 0, control.status); break;
    case ChannelControl::Kind::abandoned: on_abandoned(control.number); break;
    case ChannelControl::Kind::closed: on_closed(control.linked, control.number); break;
    default: break;
  }
  acknowledge_sends(control.prefix);
  look_if_closed();
}

// Receives
// ---------------------------------------------------------------------------------------------------------------------

Status ChannelEndpoint::post_recv(Buffer landing, Op& op) noexcept { return receive(landing, op, nullptr); }

Status ChannelEndpoint::post_recv_at(std::uint64_t number, Buffer landing, Op& op) noexcept {
  op.result = {Status::ok, 0};
  if (landed_.has(number)) [[unlikely]]
    return Status::invalid_argument;
  return receive(landing, op, &number);
}

std::uint64_t ChannelEndpoint::take_receive_number() noexcept {
  if (returned_numbers_.empty()) return next_receive_++;
  const auto first = std::min_element(returned_numbers_.begin(), returned_numbers_.end());
  const std::uint64_t number = *first;
  returned_numbers_.erase(first);
  return number;
}

/// `number`: of which message; null for the next.
Status ChannelEndpoint::receive(Buffer landing, Op& op, const std::uint64_t* number) noexcept {
  op.result = {Status::ok, 0};
  if (refused_ != Status::ok) return refused_;
  Path path = Path::automatic;
  std::uint64_t buffer_id = 0;
  Status status = engine_.resolve_kind(landing.data, landing.bytes, landing.kind, &buffer_id);
  if (status == Status::ok && number == nullptr && waits_for_small(landing)) {
    if (!link_receiver_->came(next_receive_)) return await_small(landing, op);
    if (take_small(landing, op)) return Status::ok;
  }
  if (status == Status::ok) status = choose(landing.kind, landing.bytes, path);
  if (status != Status::ok) return status;
  Transfer* transfer = take_transfer(false);
  if (transfer == nullptr) return Status::limit_reached;
  transfer->buffer = landing;
  transfer->path = path;
  transfer->buffer_id = buffer_id;
  transfer->numbered = number != nullptr;
  transfer->number = number != nullptr ? *number : take_receive_number();
  status = begin_receive(*transfer);
  if (status == Status::in_progress) {
    attach(*transfer, op);
    // Only what had arrived before the death can still be received; it would have matched at once.
    if (peer_.lost || transfer->number >= never_comes_) withdraw(*transfer, Status::peer_lost);
    return status;
  }
  op.result.bytes = transfer->wire().bytes;
  settle_turn(*transfer, status);
  release(*transfer);
  return status;
}

Status ChannelEndpoint::begin_receive(Transfer& transfer) noexcept {
  if (Status status = Status::ok; !lost_.empty() && take_lost(transfer, status)) return status;
  transfer.here = transfer.buffer;
  if (goes_through_stage(transfer)) {
    if (const Status leased = lease_stage(transfer, transfer.buffer.bytes); leased != Status::ok) return leased;
    transfer.here = transfer.staged(transfer.buffer.bytes);
  }
  const Status status = linked_ ? link_receiver_->receive(transfer) : tag_recv(transfer, transfer.here);
  if (status == Status::in_progress) return status;
  transfer.wire().status = status;
  return landed_on_wire(transfer);
}

Status ChannelEndpoint::landed_on_wire(Transfer& transfer) noexcept {
  const Status status = transfer.wire().status;
  transfer.become(TransferState::carried);
  if (status == Status::ok && transfer.is_staged() && transfer.wire().bytes != 0) {
    const auto bytes = static_cast<std::size_t>(transfer.wire().bytes);
    const Status copying = stage(transfer, transfer.buffer, transfer.staged(bytes), bytes);
    if (copying == Status::in_progress) return copying;
    consumed(transfer, copying);
    return copying;
  }
  if (status == Status::ok || status == Status::truncated) consumed(transfer, status);
  return status;
}

void ChannelEndpoint::end_receive(Transfer& transfer, Status status) noexcept {
  engine_.finish(transfer, {status, transfer.wire().bytes});
  release(transfer);
}

void ChannelEndpoint::settle_turn(Transfer& transfer, Status status) noexcept {
  if (transfer.consumed) return;
  if (transfer.lost) return consumed(transfer, status);
  return_number(transfer);
  if (linked_) link_receiver_->on_withdrawn_elsewhere(transfer);
  if (transfer.let_go && !peer_.lost) take_for_nobody(transfer.number);
}

void ChannelEndpoint::consumed(Transfer& transfer, Status status) noexcept {
  transfer.consumed = true;
  count_received(transfer.number, transfer.wire().bytes);
  if (status == Status::ok || status == Status::truncated) {
    PathTally& path = engine_.counters().path(transfer.path);
    path.receives.add();
    path.bytes_received.add(transfer.wire().bytes);
  }
  if (status != Status::ok && !transfer.sender_knows) {
    using Kind = ChannelControl::Kind;  // either tells how far this end has come
    return send_control(status == Status::truncated ? Kind::truncated : Kind::not_taken, transfer.number, status);
  }
  acknowledge_if_due(transfer.number,
                     transfer.acknowledged || tag::type_of(transfer.wire().tag) == tag::Type::channel_acknowledged);
}

void ChannelEndpoint::count_received(std::uint64_t number, std::uint64_t bytes) noexcept {
  landed_.landed(number, bytes);
  ++counts_.received;
  if (!hidden_) ++traffic_.received;
}

/// `acknowledged`: the sender waits for that.
void ChannelEndpoint::acknowledge_if_due(std::uint64_t number, bool acknowledged) noexcept {
  if (acknowledged) wanted_prefix_ = std::max(wanted_prefix_, number + 1);
  const bool wanted = wanted_prefix_ > landed_.told() && landed_.prefix() > landed_.told();
  if (wanted || landed_.should_tell() || other_closed_ != 0) send_control(ChannelControl::Kind::acknowledge, 0);
}

void ChannelEndpoint::send_control(ChannelControl::Kind kind, std::uint64_t number, Status status) noexcept {
  landed_.tell();
  table_.send_control(peer_, {kind, id_.value, side_, engine_.job().rank, 0, landed_.told(), number, status});
}

// Steps that complete later
// ----------------------------------------------------------------------------------------------------

void ChannelEndpoint::on_wire_done(port::WireOp& wire) noexcept {
  Transfer& transfer = Transfer::of(wire);
  transfer.endpoint.engine_.note_wire_op(-1);
  transfer.endpoint.carried(transfer);
}

void ChannelEndpoint::carried(Transfer& transfer) noexcept {
  transfer.become(TransferState::carried);
  if (transfer.drains) return release(transfer);
  if (!transfer.is_send) {
    const Status status = landed_on_wire(transfer);
    if (status == Status::in_progress) return;
    settle_turn(transfer, status);
    end_receive(transfer, final_status(transfer, status));
    return;
  }
  const Status carried = transfer.wire().status;
  if (carried == Status::ok || carried == Status::truncated) count_send(transfer.path, transfer.buffer.bytes);
  if (carried == Status::ok && transfer.outcome == Status::ok) {
    source_freed(transfer);
  } else {
    const bool gone = carried == Status::ok || (carried == Status::truncated && transfer.outcome != Status::ok);
    fail_send(transfer, final_status(transfer, gone ? transfer.outcome : carried));
  }
  start_waiting();
}

const MoveEvents ChannelEndpoint::kMoveEvents{[](Move& move, Status status) noexcept {
                                                Transfer& transfer = static_cast<TransferMove&>(move).transfer;
                                                transfer.endpoint.moved(transfer, status);
                                              },
                                              nullptr};

void ChannelEndpoint::moved(Transfer& transfer, Status status) noexcept {
  if (transfer.state() == TransferState::pulling) return link_receiver_->on_pulled(transfer);
  if (!transfer.is_send) {
    if (transfer.slot != DeviceSlots::kNone) link_receiver_->on_unloaded(transfer);
    consumed(transfer, status);
    end_receive(transfer, status);
    return;
  }
  if (status == Status::ok && peer_.lost) status = Status::peer_lost;
  transfer.state() == TransferState::copying ? link_sender_->copied(transfer, status) : staged_out(transfer, status);
}

void ChannelEndpoint::staged_out(Transfer& transfer, Status status) noexcept {
  if (status == Status::ok) {
    status = carry(transfer, transfer.staged(transfer.buffer.bytes));
    if (status == Status::in_progress) return;
  }
  if (status == Status::ok) {
    count_send(transfer.path, transfer.buffer.bytes);
    source_freed(transfer);
  } else {
    fail_send(transfer, final_status(transfer, status));
  }
}

void ChannelEndpoint::on_lost(PeerOp& op) noexcept {
  auto& lost = static_cast<ChannelOp&>(op);
  lost.endpoint.withdraw(lost, Status::peer_lost);
}

void ChannelEndpoint::on_cancel(OpOwner& owner) noexcept {
  auto& canceled = static_cast<ChannelOp&>(owner);
  ChannelEndpoint& self = canceled.endpoint;
  const bool given_up_late = self.closed_ && canceled.is_send && !canceled.observed();
  given_up_late ? self.give_up_late(static_cast<Transfer&>(canceled)) : self.withdraw(canceled, Status::canceled);
}

void ChannelEndpoint::withdraw(ChannelOp& op, Status why) noexcept {
  op.form == ChannelOp::Form::small_receive ? withdraw_small(static_cast<SmallReceive&>(op), why)
                                            : withdraw(static_cast<Transfer&>(op), why);
}

void ChannelEndpoint::withdraw(Transfer& transfer, Status why) noexcept {
  switch (transfer.state()) {
    case TransferState::held_back:
      waiting_.remove(transfer);
      --waiting_count_;
      count_posted(-1);
      engine_.finish(transfer, {why, 0});
      release(transfer);
      return;
    case TransferState::awaiting_ack:
      if (why != Status::canceled) end_send(transfer, why);
      return;
    case TransferState::staging: return;  // ends by itself, and sees then that the peer is gone
    default: break;
  }
  if (!transfer.is_send) return withdraw_receive(transfer, why);
  if (why != Status::canceled) withdraw_send(transfer, why);
}

void ChannelEndpoint::withdraw_receive(Transfer& transfer, Status why) noexcept {
  if (transfer.drains && why == Status::canceled) return;  // for the other end, not for this one
  if (transfer.outcome == Status::ok && !hidden_) ++traffic_.withdrawing;
  transfer.outcome = why;
  if (linked_ && link_receiver_->withdraw(transfer, why != Status::canceled)) return;
  if (why == Status::peer_lost) {
    engine_.wire().abandon(transfer.wire());
  } else if (!transfer.observed()) {
    engine_.wire().take_back(transfer.wire());  // its owner may free the landing the next moment
  } else {
    engine_.wire().cancel(transfer.wire());
  }
}

/// Over the network what is on its way cannot be taken back. A lost peer's end it with the wire's disconnect; one that
/// lives takes it for nobody, unless there is no end that could have met it.
void ChannelEndpoint::withdraw_send(Transfer& transfer, Status why) noexcept {
  if (linked_ && link_sender_->withdraw(transfer)) return end_send(transfer, why);
  if (transfer.state() != TransferState::network || peer_.lost) return;
  transfer.outcome = why;
  nobody_receives() ? engine_.finish(transfer, {why, 0}) : let_go(transfer);
}

void ChannelEndpoint::refuse(Status status) noexcept {
  if (refused_ != Status::ok) return;
  refused_ = status;
  end_pending(status);
}

std::size_t ChannelEndpoint::end_after(std::uint64_t number) noexcept {
  return std::exchange(never_comes_, number) == number ? 0 : end_pending(Status::peer_lost, number);
}

std::size_t ChannelEndpoint::end_pending(Status why, std::uint64_t first) noexcept {
  std::size_t withdrawn = 0;
  for (; Transfer* transfer = waiting_.front(); ++withdrawn) withdraw(*transfer, why);
  // What the peer's other channels wait for may be much.
  std::size_t own = live_ops_;
  for (PeerOp* op = peer_.outstanding.front(); op != nullptr && own != 0;) {
    PeerOp* following = IntrusiveList<PeerOp, &PeerOp::peer_hook>::next(*op);
    if (op->lost == &ChannelEndpoint::on_lost && &static_cast<ChannelOp&>(*op).endpoint == this) {
      auto& pending = static_cast<ChannelOp&>(*op);
      --own;
      if (pending.is_send || pending.number >= first) {
        withdraw(pending, why);
        ++withdrawn;
      }
    }
    op = following;
  }
  return withdrawn;
}

}  // namespace brant
