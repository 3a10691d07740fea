#include "ops/channel/sends.h"

#include "base/log.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/table.h"

namespace brant {

ChannelSends::ChannelSends(ChannelEndpoint& end) noexcept : end_(end), engine_(end.engine()) {}

// A message leaves
// ----------------------------------------------------------------------------------------------------------------

Status ChannelSends::begin(Source what, Op& op) noexcept {
  op.result = {Status::ok, 0};
  ConstBuffer& source = what.buffer;
  Status status = engine_.memory_kinds().resolve(source.data, source.bytes, source.kind, what.memory);
  if (what.shape != nullptr) source.bytes = what.shape->bytes();
  if (status == Status::ok) look_for_landing(source);
  if (end_.refused() != Status::ok) return end_.refused();
  if (end_.peer().lost || end_.peer().ended) return Status::peer_lost;
  if (status == Status::ok) {
    status = what.shape == nullptr ? end_.paths().choose_again(source.kind, source.bytes, what.path)
                                   : end_.paths().choose_for_shape(source.kind, source.bytes, what.path);
  }
  if (status != Status::ok) return status;
  if (what.path == Path::shm && op.delivered.fire == nullptr && has_room(source.bytes) &&
      (what.shape == nullptr ? send_at_once(source) : send_packed(what))) {
    op.result.bytes = source.bytes;
    return Status::ok;
  }
  return send(what, op);
}

/// A window of messages goes on its way while it is being posted, and not in the first progress after that.
void ChannelSends::look_for_landing(ConstBuffer source) noexcept {
  if (end_.linked() && !host_accessible(source.kind)) end_.link_sender()->look_for_landing(window_.next());
}

Status ChannelSends::send(const Source& what, Op& op) noexcept {
  const ConstBuffer& source = what.buffer;
  Transfer* transfer = end_.records().take(true);
  if (transfer == nullptr) return end_.table().pools().transfers.refusal();
  transfer->buffer = Buffer(const_cast<void*>(source.data), source.bytes, source.kind);
  transfer->path = what.path;
  transfer->buffer_id = what.memory.buffer_id;
  transfer->acknowledged = op.delivered.fire != nullptr;
  Status status = what.shape != nullptr ? end_.moves().lay(*transfer, *what.shape) : Status::ok;
  if (status != Status::ok) {
    end_.records().give_back(*transfer);
    return status;
  }
  count_posted(1);
  if (!has_room(source.bytes)) {
    transfer->become(TransferState::held_back);
    waiting_.push_back(*transfer);
    ++waiting_count_;
    end_.records().attach(*transfer, op);
    return Status::in_progress;
  }
  status = begin(*transfer);
  if (status == Status::in_progress) {
    end_.records().attach(*transfer, op);
    return status;
  }
  if (status == Status::ok || status == Status::truncated) {
    count(transfer->path, source.bytes);
    op.result.bytes = source.bytes;
    if (status == Status::ok && transfer->acknowledged) {
      end_.records().attach(*transfer, op);
      await_ack(*transfer);
      return Status::in_progress;
    }
    under_way_.remove(*transfer);
  } else {
    count_posted(-1);
  }
  end_.records().give_back(*transfer);
  return status;
}

/// A small message of host memory leaves within the post, and no record of it is made. The window has room for it;
/// false: it goes another way, or the link has no room.
bool ChannelSends::send_at_once(ConstBuffer source) noexcept {
  if (engine_.trace() != nullptr || !host_accessible(source.kind)) return false;
  if (end_.linked()) {
    if (source.bytes >= kOfferedBytes || !end_.link_sender()->send_at_once(window_.next(), source)) return false;
  } else if (!end_.matched_here() || source.bytes > kEagerBytes ||
             !end_.local()->send_at_once(window_.next(), source)) {
    return false;
  }
  static_cast<void>(window_.take(source.bytes));
  ++sent_;
  ++end_.table().traffic().moves;
  count_posted(1);
  count(Path::shm, source.bytes);
  return true;
}

Status ChannelSends::begin(Transfer& transfer) noexcept {
  transfer.number = window_.take(transfer.buffer.bytes);
  under_way_.push_back(transfer);
  const Status status = leave(transfer);
  if (status != Status::ok && status != Status::in_progress && status != Status::truncated) {
    window_.give_back_last();
    under_way_.remove(transfer);
    return status;
  }
  if (status == Status::ok) transfer.become(TransferState::carried);
  ++sent_;
  return status;
}

Status ChannelSends::leave(Transfer& transfer) noexcept {
  if (!end_.moves().needs_stage(transfer)) return carry(transfer, transfer.buffer);
  const Status staged = end_.moves().stage_out(transfer);
  return staged == Status::ok ? carry(transfer, transfer.staged(transfer.buffer.bytes)) : staged;
}

/// By tags of the network, as is agreed upon over the link of the two processes, or within this one.
Status ChannelSends::carry(Transfer& transfer, const Buffer& bytes) noexcept {
  transfer.here = bytes;
  if (end_.matched_here()) return end_.local()->send(transfer);
  return end_.linked() ? end_.link_sender()->send(transfer) : end_.network().send(transfer);
}

void ChannelSends::start_waiting() noexcept {
  while (Transfer* transfer = waiting_.front()) {
    if (!window_.has_room(transfer->buffer.bytes)) return;
    stop_waiting(*transfer);
    transfer->become(TransferState::begun);
    const Status status = end_.peer().lost ? Status::peer_lost : begin(*transfer);
    const bool left = status == Status::ok || status == Status::in_progress || status == Status::truncated;
    left ? settle(*transfer, status) : end_unsent(*transfer, status);
  }
}

void ChannelSends::stop_waiting(Transfer& transfer) noexcept {
  waiting_.remove(transfer);
  --waiting_count_;
}

// What becomes of it
// ----------------------------------------------------------------------------------------------------------------

void ChannelSends::carried(Transfer& transfer) noexcept {
  settle(transfer, transfer.wire().status);
  start_waiting();
}

void ChannelSends::staged(Transfer& transfer, Status status) noexcept {
  if (status == Status::ok) status = carry(transfer, transfer.staged(transfer.buffer.bytes));
  settle(transfer, status);
}

/// Its bytes have gone, or never will. in_progress: not yet.
void ChannelSends::settle(Transfer& transfer, Status status) noexcept {
  if (status == Status::in_progress) return;
  if (status == Status::ok || status == Status::truncated) count(transfer.path, transfer.buffer.bytes);
  if (status == Status::ok && transfer.outcome == Status::ok) return source_freed(transfer);
  const bool gone = status == Status::ok || (status == Status::truncated && transfer.outcome != Status::ok);
  fail(transfer, end_.final_status(transfer, gone ? transfer.outcome : status));
}

/// That is reported, and the send ends, or waits for its acknowledgement if that is wanted.
void ChannelSends::source_freed(Transfer& transfer) noexcept {
  transfer.become(TransferState::carried);
  const bool waits = transfer.acknowledged && transfer.number >= window_.acknowledged();
  // What a lost peer's network has taken all the same, before it was disconnected, nobody will acknowledge.
  if (waits && end_.peer().lost) return end(transfer, Status::peer_lost);
  waits ? await_ack(transfer) : end(transfer, Status::ok);
}

void ChannelSends::await_ack(Transfer& transfer) noexcept {
  transfer.become(TransferState::awaiting_ack);
  engine_.completions().report(transfer, Moment::source_free, {Status::ok, transfer.buffer.bytes});
}

void ChannelSends::end(Transfer& transfer, Status status) noexcept {
  under_way_.remove(transfer);
  engine_.completions().finish(transfer, {status, transfer.buffer.bytes});
  end_.records().give_back(transfer);
}

void ChannelSends::end_unsent(Transfer& transfer, Status status) noexcept {
  count_posted(-1);
  engine_.completions().finish(transfer, {status, 0});
  end_.records().give_back(transfer);
}

void ChannelSends::fail(Transfer& transfer, Status status) noexcept {
  // Who rejected or truncated it knows, and a lost peer waits for nothing.
  const bool known = status == Status::ok || status == Status::truncated || status == Status::peer_lost ||
                     transfer.outcome == Status::peer_rejected;
  if (!known && end_.linked()) {
    end_.link_sender()->tell_not_sent(transfer, status);
  } else if (!known) {
    end_.send_control(ChannelControl::Kind::not_sent, transfer.number, status);
  }
  end(transfer, status);
}

void ChannelSends::on_acknowledged(std::uint64_t prefix) noexcept {
  window_.acknowledge(prefix);
  for (Transfer* transfer = under_way_.front(); transfer != nullptr && transfer->number < prefix;) {
    Transfer* following = under_way_.next(*transfer);
    // Still on the wire: its completion is on the way and finds the acknowledgement in the window.
    if (transfer->state() == TransferState::awaiting_ack) end(*transfer, Status::ok);
    transfer = following;
  }
  start_waiting();
}

void ChannelSends::on_not_taken(std::uint64_t number, Status why) noexcept {
  if (why == Status::canceled) return on_not_received(number, why);  // both ends are closed
  log::error("channel {} to rank {}: message {} could not be received there ({}); that rank says why", end_.id().value,
             end_.peer().rank.value, number, status_text(why));
  on_not_received(number, Status::peer_rejected);
}

void ChannelSends::on_not_received(std::uint64_t number, Status status) noexcept {
  Transfer* transfer = under_way_.front();
  while (transfer != nullptr && transfer->number != number) transfer = under_way_.next(*transfer);
  if (transfer == nullptr) return;
  const bool asks = transfer->state() == TransferState::asking && stop(*transfer);
  if (asks || transfer->state() == TransferState::awaiting_ack) {
    end(*transfer, status);
  } else {
    transfer->outcome = status;
  }
}

void ChannelSends::note_truncated(std::uint64_t number) noexcept {
  ++truncated_;
  if (end_.id().value > kChannelIdMax) return;  // its user is a model of brant, whose users know no channels
  log::warn("channel {} to rank {}: message {} was longer than the receive buffer there and was truncated",
            end_.id().value, end_.peer().rank.value, number);
}

// It is taken back
// ----------------------------------------------------------------------------------------------------------------

std::size_t ChannelSends::withdraw_waiting(Status why) noexcept {
  std::size_t withdrawn = 0;
  for (; Transfer* transfer = waiting_.front(); ++withdrawn) withdraw(*transfer, why);
  return withdrawn;
}

/// Over the network what is on its way cannot be taken back. A lost peer's end it with the wire's disconnect; one that
/// lives takes it for nobody, unless there is no end that could have met it.
void ChannelSends::withdraw(Transfer& transfer, Status why) noexcept {
  const TransferState state = transfer.state();
  if (state == TransferState::held_back) {
    stop_waiting(transfer);
    return end_unsent(transfer, why);
  }
  // A copy to a pinned buffer ends by itself, and sees then that the peer is gone.
  if (why == Status::canceled || state == TransferState::staging) return;
  if (state == TransferState::awaiting_ack) return end(transfer, why);
  if (stop(transfer)) return end(transfer, why);
  if (state != TransferState::network || end_.peer().lost) return;
  transfer.outcome = why;
  end_.closing().nobody_receives() ? engine_.completions().finish(transfer, {why, 0}) : let_go(transfer);
}

/// False if it is with the network, or a device.
bool ChannelSends::stop(Transfer& transfer) noexcept {
  if (end_.matched_here()) return end_.local()->withdraw_send(transfer);
  return end_.linked() && end_.link_sender()->withdraw(transfer);
}

void ChannelSends::let_go(Transfer& transfer) noexcept {
  if (transfer.state() == TransferState::staging) return;
  if (end_.matched_here()) {
    end_.local()->let_go(transfer);
  } else if (end_.linked()) {
    end_.link_sender()->let_go(transfer);
  } else if (!transfer.let_go) {
    transfer.let_go = true;
    end_.send_control(ChannelControl::Kind::abandoned, transfer.number);
  }
}

// Counts
// ----------------------------------------------------------------------------------------------------------------

std::optional<std::uint64_t> ChannelSends::first_pending() const noexcept {
  if (const Transfer* first = under_way_.front()) return first->number;
  return waiting_.empty() ? std::nullopt : std::optional(window_.next());
}

void ChannelSends::count_into(ChannelCounts& counts) const noexcept {
  counts.sent = sent_;
  counts.waiting = waiting_count_;
  counts.truncated = truncated_;
}

/// Once it has gone: only then it is certain by which path.
void ChannelSends::count(Path path, std::uint64_t bytes) noexcept {
  PathTally& tally = engine_.counters().path(path);
  tally.sends.add();
  tally.bytes_sent.add(bytes);
}

void ChannelSends::count_posted(int sign) noexcept {
  if (!end_.hidden()) end_.table().traffic().sent += static_cast<std::uint64_t>(sign);
}

}  // namespace brant
