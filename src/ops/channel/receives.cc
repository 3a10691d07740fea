#include "ops/channel/receives.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/table.h"
#include "ops/channel/tag.h"

namespace brant {
namespace {

void count_receive(Engine& engine, Path path, std::uint64_t bytes) noexcept {
  PathTally& tally = engine.counters().path(path);
  tally.receives.add();
  tally.bytes_received.add(bytes);
}

}  // namespace

ChannelReceives::ChannelReceives(ChannelEndpoint& end) noexcept : end_(end), engine_(end.engine()), small_(end) {}

void ChannelReceives::resume(std::uint64_t next) noexcept {
  landed_ = LandedPrefix(next);
  turns_.skip_to(next);
}

namespace {

Status from_other_end(ChannelEndpoint& end, Transfer& transfer) noexcept {
  if (end.matched_here()) return end.local()->receive(transfer);
  return end.linked() ? end.link_receiver()->receive(transfer) : end.network().receive(transfer, transfer.here);
}

}  // namespace

// A receive begins
// ----------------------------------------------------------------------------------------------------------------

Status ChannelReceives::begin(Landing what, Op& op, std::optional<std::uint64_t> number) noexcept {
  op.result = {Status::ok, 0};
  if (end_.refused() != Status::ok) return end_.refused();
  if (number && landed_.has(*number)) [[unlikely]]
    return Status::invalid_argument;
  Buffer& landing = what.buffer;
  Status status = engine_.memory_kinds().resolve(landing.data, landing.bytes, landing.kind, what.memory);
  if (status != Status::ok) return status;
  if (what.shape != nullptr) {
    landing.bytes = what.shape->bytes();
    status = end_.paths().choose_for_shape(landing.kind, landing.bytes, what.path);
  } else {
    if (!number && small_.suits(landing)) {
      const Status small = small_.receive(landing, op);
      if (small != Status::not_supported) return small;
    }
    status = end_.paths().choose(landing.kind, landing.bytes, what.path);
  }
  return status == Status::ok ? start(what, op, number) : status;
}

Status ChannelReceives::start(const Landing& landing, Op& op, std::optional<std::uint64_t> number) noexcept {
  if (!number && !turns_.can_take(landed_.prefix())) [[unlikely]]
    return Status::no_memory;
  Transfer* transfer = end_.records().take(false);
  if (transfer == nullptr) return end_.table().pools().transfers.refusal();
  transfer->buffer = landing.buffer;
  transfer->path = landing.path;
  transfer->buffer_id = landing.memory.buffer_id;
  Status status = landing.shape != nullptr ? end_.moves().lay(*transfer, *landing.shape) : Status::ok;
  if (status != Status::ok) {
    end_.records().give_back(*transfer);
    return status;
  }
  transfer->numbered = number.has_value();
  transfer->number = number ? *number : turns_.take();
  status = begin(*transfer);
  if (status == Status::in_progress) {
    end_.records().attach(*transfer, op);
    // Only what had arrived before the death can still be received; it would have matched at once.
    if (end_.peer().lost || transfer->number >= never_comes_) withdraw(*transfer, Status::peer_lost);
    return status;
  }
  settle_turn(*transfer, status);
  if (transfer->consumed) op.result.bytes = transfer->wire().bytes;  // else the message is the next receive's
  end_.records().give_back(*transfer);
  return status;
}

Status ChannelReceives::begin(Transfer& transfer) noexcept {
  if (const std::optional<LostMessage> lost = lost_.take(transfer.number)) {
    transfer.note_lost(lost->bytes, lost->sender_knows);
    return lost->status;
  }
  transfer.here = transfer.buffer;
  if (end_.moves().needs_stage(transfer)) {
    const Status leased = end_.moves().lease_stage(transfer, transfer.buffer.bytes);
    if (leased != Status::ok) return leased;
    transfer.here = transfer.staged(transfer.buffer.bytes);
  }
  const Status status = from_other_end(end_, transfer);
  if (status == Status::in_progress) return status;
  transfer.wire().status = status;
  return landed(transfer);
}

// Its message has come
// ----------------------------------------------------------------------------------------------------------------

void ChannelReceives::carried(Transfer& transfer) noexcept {
  const Status status = landed(transfer);
  if (status == Status::in_progress) return;
  settle_turn(transfer, status);
  end(transfer, {end_.final_status(transfer, status), transfer.wire().bytes});
}

/// Network and link are done with it: ok and truncated count as consumed. Returns in_progress while the copy to the
/// device runs.
Status ChannelReceives::landed(Transfer& transfer) noexcept {
  Status status = transfer.wire().status;
  transfer.become(TransferState::carried);
  // Its owner may have freed the landing since it took the receive back.
  const bool unwanted = transfer.outcome != Status::ok && !transfer.observed();
  if (status == Status::ok && transfer.is_staged() && transfer.wire().bytes != 0 && !unwanted) {
    status = end_.moves().stage_in(transfer, static_cast<std::size_t>(transfer.wire().bytes));
    if (status == Status::in_progress) return status;
    consumed(transfer, status);
  } else if (status == Status::ok || status == Status::truncated) {
    consumed(transfer, status);
  }
  return status;
}

void ChannelReceives::copied(Transfer& transfer, Status status) noexcept {
  if (transfer.slot != DeviceSlots::kNone) end_.link_receiver()->on_unloaded(transfer);
  consumed(transfer, status);
  end(transfer, {status, transfer.wire().bytes});
}

void ChannelReceives::end(Transfer& transfer, const OpResult& result) noexcept {
  engine_.completions().finish(transfer, result);
  end_.records().give_back(transfer);
}

/// Its turn is over, or another's.
void ChannelReceives::settle_turn(Transfer& transfer, Status status) noexcept {
  if (transfer.consumed) return;
  if (transfer.lost) return consumed(transfer, status);
  end_.peer().remove_outstanding(transfer);  // it has ended: an end that refuses all else must not end it again
  return_turn(transfer);
  if (end_.linked()) end_.link_receiver()->on_withdrawn_elsewhere(transfer);
  if (transfer.let_go && !end_.peer().lost) take_for_nobody(transfer.number);
}

void ChannelReceives::consumed(Transfer& transfer, Status status) noexcept {
  transfer.consumed = true;
  count_landed(transfer.number, transfer.wire().bytes);
  if (status == Status::ok || status == Status::truncated) count_receive(engine_, transfer.path, transfer.wire().bytes);
  if (status != Status::ok && !transfer.sender_knows) {
    using Word = ChannelControl::Kind;  // either tells how far this end has come
    return end_.send_control(status == Status::truncated ? Word::truncated : Word::not_taken, transfer.number, status);
  }
  acknowledge_if_due(transfer.number,
                     transfer.acknowledged || tag::type_of(transfer.wire().tag) == tag::Type::channel_acknowledged);
}

void ChannelReceives::count_small(std::uint64_t number, std::size_t bytes, bool acknowledged) noexcept {
  count_landed(number, bytes);
  count_receive(engine_, Path::shm, bytes);
  acknowledge_if_due(number, acknowledged);
}

void ChannelReceives::count_landed(std::uint64_t number, std::uint64_t bytes) noexcept {
  landed_.landed(number, bytes);
  ++received_;
  if (!end_.hidden()) ++end_.table().traffic().received;
}

/// `acknowledged`: the sender waits for that.
void ChannelReceives::acknowledge_if_due(std::uint64_t number, bool acknowledged) noexcept {
  if (acknowledged) wanted_prefix_ = std::max(wanted_prefix_, number + 1);
  const bool wanted = wanted_prefix_ > landed_.told() && landed_.prefix() > landed_.told();
  if (wanted || landed_.should_tell() || end_.closing().is_closed_there()) {
    end_.send_control(ChannelControl::Kind::acknowledge, 0);
  }
}

void ChannelReceives::tell_progress() noexcept {
  if (landed_.prefix() != landed_.told()) end_.send_control(ChannelControl::Kind::acknowledge, 0);
}

std::optional<std::uint64_t> ChannelReceives::first_pending() const noexcept {
  for (std::uint64_t number = landed_.prefix(); number < turns_.next(); ++number) {
    if (!landed_.has(number) && turns_.is_taken(number)) return number;
  }
  return std::nullopt;
}

// It is taken back
// ----------------------------------------------------------------------------------------------------------------

void ChannelReceives::withdraw(Transfer& transfer, Status why) noexcept {
  if (transfer.state() == TransferState::staging) {
    // It ends by itself, unless its owner may free the landing the next moment.
    const bool stopped = !transfer.observed() && end_.moves().stop_staging(transfer);
    return stopped ? copied(transfer, why) : void();
  }
  if (transfer.drains && why == Status::canceled) return;  // for the other end, not for this one
  note_withdrawn(transfer, why);
  if (end_.matched_here() && transfer.state() != TransferState::network)
    return end_.local()->withdraw_receive(transfer);
  if (end_.linked() && end_.link_receiver()->withdraw(transfer, why != Status::canceled)) return;
  end_.network().withdraw(transfer, why);
}

void ChannelReceives::note_withdrawn(Transfer& transfer, Status why) noexcept {
  if (transfer.outcome == Status::ok && !end_.hidden()) ++end_.table().traffic().withdrawing;
  transfer.outcome = why;
}

// Messages that never come
// ----------------------------------------------------------------------------------------------------------------

std::size_t ChannelReceives::end_after(std::uint64_t number) noexcept {
  if (std::exchange(never_comes_, number) == number) return 0;
  return end_.records().withdraw(Status::peer_lost, number);
}

void ChannelReceives::on_not_sent(std::uint64_t number, std::uint64_t bytes, Status why) noexcept {
  if (landed_.has(number)) {  // nobody wants it
    if (Transfer* drain = find_with_network(number, true)) end_.network().cancel(*drain);
    return;
  }
  if (why != Status::canceled) {
    log::error("channel {} from rank {}: message {} of {} bytes could not be sent there ({}); that rank says why",
               end_.id().value, end_.peer().rank.value, number, bytes, status_text(why));
  }
  const LostMessage message{number, bytes, why == Status::canceled ? why : Status::peer_rejected, true};
  if (end_.linked() && end_.link_receiver()->end_lost(message)) return;
  if (end_.matched_here() && end_.local()->end_lost(message)) return;
  Transfer* transfer = find_with_network(number);
  if (transfer == nullptr) return remember_lost(message);
  transfer->lost = true;
  transfer->sender_knows = true;
  if (transfer->outcome == Status::ok) note_withdrawn(*transfer, message.status);
  end_.network().cancel(*transfer);
}

Transfer* ChannelReceives::find_with_network(std::uint64_t number, bool drains) noexcept {
  Transfer* transfer = end_.records().find_receive(number, drains);
  const bool with_network = transfer != nullptr && transfer->state() == TransferState::network && !transfer->consumed;
  return with_network ? transfer : nullptr;
}

void ChannelReceives::remember_lost(const LostMessage& message) noexcept {
  if (const Status added = lost_.add(message); added != Status::ok) end_.refuse(added);
}

// Messages that nobody receives
// ----------------------------------------------------------------------------------------------------------------

void ChannelReceives::on_abandoned(std::uint64_t number) noexcept {
  ChannelRecords& records = end_.records();
  if (landed_.has(number) || lost_.has(number) || records.find_receive(number, true) != nullptr) return;
  if (Transfer* transfer = records.find_receive(number)) {
    transfer->let_go = true;
  } else {
    take_for_nobody(number);
  }
}

/// It is drained, and the receive that asks for it gets `canceled`.
void ChannelReceives::take_for_nobody(std::uint64_t number) noexcept {
  remember_lost({number, 0, Status::canceled, true});
  drain(number);
}

void ChannelReceives::drain(std::uint64_t number) noexcept {
  Transfer* transfer = end_.records().take(false);
  if (transfer == nullptr) return;  // its sender waits for some seconds, and says so
  transfer->drains = true;
  transfer->number = number;
  if (end_.network().receive(*transfer, Buffer(nullptr, 0, MemoryKind::host)) == Status::in_progress) {
    end_.peer().add_outstanding(*transfer);
  } else {
    end_.records().give_back(*transfer);
  }
}

void ChannelReceives::tell_not_taken(std::uint64_t number) noexcept {
  end_.send_control(ChannelControl::Kind::not_taken, number, Status::canceled);
}

void ChannelReceives::drop_before(std::uint64_t end) noexcept {
  const std::uint64_t begin = landed_.prefix();
  if (end <= begin || end - begin > kWindowMessages) return;
  for (std::uint64_t number = begin; number < end; ++number) {
    if (!landed_.has(number) && end_.records().find_receive(number) == nullptr) drop(number);
  }
  turns_.skip_to(end);
  tell_progress();
}

void ChannelReceives::drop(std::uint64_t number) noexcept {
  const std::optional<LostMessage> lost = lost_.take(number);
  turns_.strike(number);
  landed_.landed(number, 0);
  if (!end_.hidden()) ++end_.table().traffic().received;
  if (!lost || !lost->sender_knows) tell_not_taken(number);
  if (lost) return;
  if (end_.matched_here()) return end_.local()->drop(number);
  end_.linked() ? end_.link_receiver()->drop(number) : drain(number);
}

}  // namespace brant
