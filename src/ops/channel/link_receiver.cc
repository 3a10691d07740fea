#include "ops/channel/link_receiver.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/shaped.h"
#include "ops/channel/table.h"

namespace brant {

using Kind = LinkMessage::Kind;

namespace {

constexpr const char* kTwice = "a channel's message that it has sent before";

/// Its sender's device was told where to write so much.
bool may_have_landed(const Transfer& transfer, std::uint64_t bytes) noexcept {
  const bool reached = transfer.by_device || !host_accessible(transfer.here.kind);
  return is_told(transfer.state()) && reached && bytes <= transfer.here.bytes;
}

}  // namespace

LinkReceiver::LinkReceiver(ChannelEndpoint& endpoint, LinkPump& pump) noexcept
    : endpoint_(endpoint),
      pump_(pump),
      posted_(endpoint, pump),
      arrivals_(endpoint.table().pools().arrivals, endpoint.table().stages(), &pump.slots()) {}

void LinkReceiver::distrust(const char* what) noexcept { endpoint_.engine().peers().distrust(endpoint_.peer(), what); }

// Receives come and go
// ----------------------------------------------------------------------------------------------------

Status LinkReceiver::receive(Transfer& transfer) noexcept {
  if (Arrival* arrival = arrivals_.find(transfer.number)) return take(transfer, *arrival);
  posted_.add(transfer);
  posted_.tell(transfer);
  return Status::in_progress;
}

/// What comes for it is no message that a landing is enough for.
void LinkReceiver::grow_if_small(std::uint64_t number) noexcept {
  Transfer* transfer = endpoint_.receives().small().grow(number);
  if (transfer == nullptr) return;
  transfer->here = transfer->buffer;
  posted_.add(*transfer);
}

void LinkReceiver::leave(Transfer& transfer) noexcept {
  posted_.remove(transfer);
  posted_.tell_untold();
}

void LinkReceiver::end(Transfer& transfer, Status status) noexcept {
  leave(transfer);
  endpoint_.carried(transfer, status);
}

bool LinkReceiver::withdraw(Transfer& transfer, bool for_good) noexcept {
  const TransferState state = transfer.state();
  if (state == TransferState::network) return false;
  if (for_good) pump_.flags().forsake(transfer);
  if (transfer.ghost) {
    if (for_good) end_ghost(transfer.number);
  } else if (for_good || state == TransferState::posted) {
    end(transfer, Status::canceled);
  } else {
    if (state == TransferState::announced) {
      transfer.become(TransferState::retracting);
      pump_.control(endpoint_.link_message(Kind::retract, transfer));
    }
    if (!transfer.observed()) posted_.become_ghost(transfer);
  }
  return true;
}

void LinkReceiver::end_ghost(std::uint64_t number) noexcept {
  Transfer* ghost = posted_.find_ghost(number);
  if (ghost == nullptr) return;
  posted_.remove(*ghost);
  endpoint_.receives().end(*ghost, {Status::canceled, 0});
}

/// All bytes are there. Those of a ghost are for the receive that got the turn.
void LinkReceiver::complete(Transfer& transfer) noexcept {
  transfer.ghost ? hand_over(transfer) : end(transfer, Status::ok);
}

// Records come
// ------------------------------------------------------------------------------------------------------------

void LinkReceiver::on_message(const LinkMessage& message, std::span<const std::byte> payload) noexcept {
  const bool whole = message.kind == Kind::eager;
  if (whole && endpoint_.receives().small().land(message.number, payload, message.acknowledged)) return;
  grow_if_small(message.number);
  switch (message.kind) {
    case Kind::ask: return on_ask(message);
    case Kind::data: return on_piece(message, payload);
    case Kind::landed: return on_landed(message);
    case Kind::abandoned: return on_abandoned(message);
    case Kind::failed:
      pump_.flags().give_back(static_cast<std::uint16_t>(message.flag));  // of a receive that was given up
      end_ghost(message.number);
      return endpoint_.receives().on_not_sent(message.number, message.bytes, static_cast<Status>(message.offset));
    case Kind::retracted: {
      end_ghost(message.number);
      Transfer* transfer = posted_.find(message.number);
      if (transfer != nullptr && transfer->state() == TransferState::retracting) end(*transfer, Status::canceled);
      return;
    }
    case Kind::stored:
      if (!pump_.slots().can_hold(static_cast<std::uint16_t>(message.flag), message.bytes)) [[unlikely]]
        return distrust("word of a channel's message in a slot that there is not, or that it does not fit");
      return arrive(message, {});
    case Kind::eager:
    case Kind::elsewhere:
    case Kind::truncated: return arrive(message, payload);
    default: return;  // for others
  }
}

/// A message, or all that there is to know of it, for the receive that has its turn now or later.
void LinkReceiver::arrive(const LinkMessage& message, std::span<const std::byte> payload) noexcept {
  end_ghost(message.number);
  Transfer* transfer = posted_.find(message.number);
  if (transfer == nullptr) return keep(message, payload);
  leave(*transfer);
  endpoint_.carried(*transfer, take(*transfer, message, payload));
}

/// in_progress: `ChannelEndpoint::carried` follows.
Status LinkReceiver::take(Transfer& transfer, const LinkMessage& message, std::span<const std::byte> payload) noexcept {
  if (message.kind == Kind::elsewhere) return receive_elsewhere(transfer, message);
  transfer.wire().bytes = message.bytes;
  transfer.acknowledged = message.acknowledged;
  switch (message.kind) {
    case Kind::eager: {
      transfer.came_by(Path::shm);
      const Status landed = endpoint_.moves().land(transfer, payload);
      transfer.lost = landed != Status::ok && landed != Status::truncated;
      return landed;
    }
    case Kind::stored: return unload(transfer, message);
    default: transfer.sender_knows = true; return Status::truncated;
  }
}

Status LinkReceiver::take(Transfer& transfer, Arrival& arrival) noexcept {
  const LinkMessage message = arrival.message;
  Status status = Status::ok;
  if (message.kind == Kind::ask) {
    posted_.add(transfer);
    status = answer(transfer, message);
    if (status == Status::ok) leave(transfer);
  } else if (message.kind == Kind::eager && arrival.lease.data != nullptr && !host_accessible(transfer.here.kind) &&
             message.bytes <= transfer.here.bytes && endpoint_.moves().take(transfer) == Status::ok) {
    transfer.move->lease = std::exchange(arrival.lease, {});  // the copy to the device starts where the bytes are
    transfer.wire().bytes = message.bytes;
    transfer.acknowledged = message.acknowledged;
  } else {
    if (message.kind == Kind::stored) arrival.message.flag = DeviceSlots::kNone;  // the receive's now
    status = take(transfer, message, arrival.payload());
  }
  arrivals_.give_back(arrival);
  return status;
}

/// Over the network, under its tag.
Status LinkReceiver::receive_elsewhere(Transfer& transfer, const LinkMessage& message) noexcept {
  Buffer target = transfer.here;
  const bool by_stage =
      transfer.here_is_shaped() || (target.bytes != 0 && !endpoint_.network().takes(target, transfer.buffer_id));
  transfer.elsewhere = true;
  transfer.told_bytes = message.bytes;
  transfer.came_by(Path::ucx);
  if (by_stage) {
    const std::size_t bytes = std::min<std::size_t>(target.bytes, std::max<std::uint64_t>(message.bytes, 1));
    if (const Status leased = endpoint_.moves().lease_stage(transfer, bytes); leased != Status::ok) return leased;
    target = transfer.staged(bytes);  // the endpoint copies it to the device
  }
  return endpoint_.network().receive(transfer, target);
}

void LinkReceiver::on_withdrawn_elsewhere(Transfer& transfer) noexcept {
  if (!transfer.elsewhere) return;
  const LinkMessage word = word_of(Kind::elsewhere, transfer, transfer.told_bytes);
  // A numbered receive may have been posted for it already.
  posted_.find(transfer.number) != nullptr ? arrive(word, {}) : keep(word, {});
}

/// The bytes are in this device's memory, but not where the receive wants them.
Status LinkReceiver::unload(Transfer& transfer, const LinkMessage& message) noexcept {
  const Buffer& target = transfer.buffer;  // also of a receive that was to go through a stage
  transfer.slot = message.flag;
  if (message.bytes > target.bytes) {
    on_unloaded(transfer);
    return Status::truncated;
  }
  const MoveEnd slot(pump_.slots().at(transfer.slot), endpoint_.mutual_kind());
  Path path = transfer.own_shape() != nullptr ? Path::copy_engine : Path::courier;
  if (host_accessible(target.kind)) path = Path::staged;
  const Status status = endpoint_.moves().start(
      transfer, TransferState::staging,
      {MoveEnd(target.data, target.kind), slot, static_cast<std::size_t>(message.bytes), transfer.own_shape(), path});
  if (status == Status::in_progress) return status;
  on_unloaded(transfer);
  transfer.lost = true;
  return status;
}

void LinkReceiver::on_unloaded(Transfer& transfer) noexcept {
  pump_.slots().emptied(std::exchange(transfer.slot, DeviceSlots::kNone));
}

// Messages that were agreed upon
// ----------------------------------------------------------------------------------------------------

void LinkReceiver::on_ask(const LinkMessage& message) noexcept {
  posted_.note_offers(message.place == LinkMessage::Place::mapped);
  Transfer* transfer = posted_.find_told(message.number);
  if (transfer == nullptr) {
    // A flag tells of a message before the records ahead of it.
    if (endpoint_.receives().has_landed(message.number) && !endpoint_.closing().closed()) return;
    keep(message, {});
    if (message.bytes <= kEagerBytes && message.place != LinkMessage::Place::mapped) pump_.slots().offer();
    return;
  }
  if (is_coming(transfer->state())) [[unlikely]]
    return distrust("a question for the receive of a channel's message whose bytes are coming already");
  if (answer(*transfer, message) == Status::ok) complete(*transfer);
}

/// ok: it was copied from where it is. in_progress: that goes on, or its sender was told of the landing; again, where
/// the message was still on its way to the link when it was, and the sender did not keep it.
Status LinkReceiver::answer(Transfer& transfer, const LinkMessage& ask) noexcept {
  const Status pulling = pull(transfer, ask);
  if (pulling == Status::not_supported) posted_.answer(transfer, ask);
  if (pulling == Status::ok) tell_taken(transfer.number);
  return pulling == Status::ok ? Status::ok : Status::in_progress;
}

/// Copies the message from where the sender has it. in_progress: `on_pulled` follows. not_supported: it must come
/// otherwise.
Status LinkReceiver::pull(Transfer& transfer, const LinkMessage& message) noexcept {
  if (message.place != LinkMessage::Place::mapped || !host_accessible(transfer.here.kind)) return Status::not_supported;
  MappedMemory source = pump_.mappings().imports.take(message.buffer_id, message.offset, message.bytes, Reach::cpu);
  if (source.address == nullptr) return Status::not_supported;
  if (transfer.ghost) posted_.divert(transfer, message.bytes);
  const Buffer& target = transfer.here;
  if (message.bytes > target.bytes) return Status::not_supported;  // the sender is to know
  const bool was_told = transfer.state() != TransferState::posted;
  const Status status = endpoint_.moves().start(
      transfer, TransferState::pulling,
      {MoveEnd(target.data, target.kind), MoveEnd(source.address, MemoryKind::host),
       static_cast<std::size_t>(message.bytes), transfer.shape_here(), Path::shm, std::move(source.lease)});
  if (status != Status::ok && status != Status::in_progress) return Status::not_supported;
  if (!was_told) posted_.note_known();
  transfer.wire().bytes = message.bytes;
  transfer.came_by(Path::shm);
  transfer.acknowledged = message.acknowledged;
  return status;
}

void LinkReceiver::tell_taken(std::uint64_t number) noexcept {
  LinkMessage message = endpoint_.link_message(Kind::taken);
  message.number = number;
  pump_.control(message);
}

void LinkReceiver::on_pulled(Transfer& transfer) noexcept {
  tell_taken(transfer.number);
  complete(transfer);
}

void LinkReceiver::on_piece(const LinkMessage& message, std::span<const std::byte> payload) noexcept {
  Transfer* transfer = posted_.find_told(message.number);
  if (transfer == nullptr) {
    log::error("channel {} from rank {}: a piece of message {} came without a receive", endpoint_.id().value,
               endpoint_.peer().rank.value, message.number);
    return;
  }
  // Pieces come in order, into a landing in host memory that was told, and is large enough.
  const bool first = transfer->state() != TransferState::landing;
  const bool fits = message.bytes <= transfer->here.bytes && message.offset == (first ? 0 : transfer->moved);
  if ((first && !is_told(transfer->state())) || !fits || !host_accessible(transfer->here.kind)) [[unlikely]] {
    return distrust("a piece of a channel's message that does not fit its landing");
  }
  if (first) {
    if (transfer->ghost) posted_.divert(*transfer, message.bytes);
    transfer->become(TransferState::landing);
    transfer->moved = 0;
  }
  transfer->wire().bytes = message.bytes;
  if (transfer->here_is_shaped()) {
    copy_in(*transfer, message.offset, payload);
  } else if (transfer->here.data != nullptr) {
    std::memcpy(static_cast<std::byte*>(transfer->here.data) + message.offset, payload.data(), payload.size());
  }
  transfer->moved += payload.size();
  if (transfer->moved < message.bytes) return;
  transfer->acknowledged = message.acknowledged;
  transfer->came_by(Path::shm);
  complete(*transfer);
}

void LinkReceiver::on_landed(const LinkMessage& message) noexcept {
  Transfer* transfer = posted_.find_told(message.number);
  if (transfer == nullptr) {  // given up meanwhile
    return pump_.flags().give_back(static_cast<std::uint16_t>(message.flag));
  }
  if (transfer->by_device && !transfer->ghost) transfer->path = Path::copy_engine;
  on_landed_early(*transfer, message.bytes, message.acknowledged);
}

void LinkReceiver::on_landed_early(Transfer& transfer, std::size_t bytes, bool acknowledged) noexcept {
  if (transfer.ghost) return landed_too_late(transfer, bytes);
  if (!may_have_landed(transfer, bytes)) [[unlikely]]
    return distrust("word of a channel's message in a landing that it does not fit, or that was not told");
  transfer.wire().bytes = bytes;
  transfer.acknowledged = acknowledged;
  end(transfer, Status::ok);
}

/// Written into memory that its owner took back: it cannot be handed on.
void LinkReceiver::landed_too_late(Transfer& ghost, std::uint64_t bytes) noexcept {
  log::error(
      "channel {} from rank {}: message {} of {} bytes landed in memory whose receive had been withdrawn. "
      "Cancel such receives and wait for the outcome instead",
      endpoint_.id().value, endpoint_.peer().rank.value, ghost.number, bytes);
  const LinkMessage message = word_of(Kind::landed, ghost, bytes);
  end_ghost(ghost.number);
  lose(message, Status::canceled);
}

void LinkReceiver::on_abandoned(const LinkMessage& message) noexcept {
  Arrival* word = arrivals_.find(message.number);
  const bool with_network = word != nullptr && word->message.kind == Kind::elsewhere;
  const bool asks = word != nullptr && word->message.kind == Kind::ask;
  if (!asks && !with_network) return;  // taken, declined or being received: its sender hears of it
  arrivals_.give_back(*word);
  endpoint_.receives().remember_lost({message.number, message.bytes, Status::canceled, true});
  if (with_network) return endpoint_.receives().drain(message.number);
  tell_taken(message.number);
}

// Messages without a receive
// ----------------------------------------------------------------------------------------------

void LinkReceiver::keep(const LinkMessage& message, std::span<const std::byte> payload) noexcept {
  if (endpoint_.receives().has_landed(message.number)) [[unlikely]]
    return dismiss(message);
  if (arrivals_.has(message.number)) [[unlikely]] {
    Arrival& before = *arrivals_.find(message.number);
    if (message.kind != Kind::stored || before.message.kind != Kind::ask) return distrust(kTwice);
    before.message = message;  // it waited for its receive until now
    return;
  }
  const Status status = arrivals_.keep(message, payload);
  if (status == Status::ok) return;
  log::error(
      "channel {} from rank {}: message {} of {} bytes came before its receive and cannot be kept: {}. Post "
      "receives earlier",
      endpoint_.id().value, endpoint_.peer().rank.value, message.number, message.bytes, status_text(status));
  // Where no more can be kept, nothing of what comes could be.
  status == Status::limit_reached ? endpoint_.refuse(status) : lose(message, status);
  if (message.kind != Kind::elsewhere) return;
  // Its sender waits for the network.
  endpoint_.send_control(ChannelControl::Kind::not_taken, message.number, status);
  endpoint_.receives().drain(message.number);
}

void LinkReceiver::drop(std::uint64_t number) noexcept {
  Arrival* word = arrivals_.find(number);
  if (word == nullptr) return;  // still on its way
  const bool with_network = word->message.kind == Kind::elsewhere;
  arrivals_.give_back(*word);
  if (with_network) endpoint_.receives().drain(number);
}

/// Word of a message that was dropped before that came.
void LinkReceiver::dismiss(const LinkMessage& message) noexcept {
  if (message.kind == Kind::stored) pump_.slots().emptied(static_cast<std::uint16_t>(message.flag));
  if (message.kind == Kind::elsewhere) endpoint_.receives().drain(message.number);
  if (message.kind == Kind::ask) endpoint_.receives().tell_not_taken(message.number);
}

bool LinkReceiver::end_lost(const LostMessage& message) noexcept {
  grow_if_small(message.number);
  if (Arrival* word = arrivals_.find(message.number)) arrivals_.give_back(*word);
  Transfer* transfer = posted_.find(message.number);
  if (transfer == nullptr) return false;
  transfer->note_lost(message.bytes, message.sender_knows);
  end(*transfer, message.status);
  return true;
}

/// A message came, and cannot be handed on.
void LinkReceiver::lose(const LinkMessage& message, Status status) noexcept {
  if (endpoint_.receives().has_landed(message.number)) return;  // dropped, since both ends are closed
  const LostMessage lost{message.number, message.bytes, status, false};
  if (!end_lost(lost)) endpoint_.receives().remember_lost(lost);
}

/// The message of a ghost is complete: it is for the receive that got the turn.
void LinkReceiver::hand_over(Transfer& ghost) noexcept {
  const LinkMessage whole = word_of(Kind::eager, ghost, ghost.wire().bytes);
  const StagePool::Lease lease = ghost.is_staged() ? std::exchange(ghost.move->lease, {}) : StagePool::Lease{};
  StagePool& stages = endpoint_.table().stages();
  end_ghost(whole.number);
  if (endpoint_.receives().has_landed(whole.number)) return stages.give_back(lease);  // dropped
  Arrival* arrival = lease.data == nullptr ? nullptr : arrivals_.keep(whole, lease);
  if (arrival == nullptr) {
    stages.give_back(lease);
    log::error(
        "channel {} from rank {}: message {} of {} bytes is lost: its receive was withdrawn, and there is no "
        "memory to keep it",
        endpoint_.id().value, endpoint_.peer().rank.value, whole.number, whole.bytes);
    return lose(whole, Status::no_memory);
  }
  Transfer* next = posted_.find(whole.number);
  if (next == nullptr) return;
  leave(*next);
  endpoint_.carried(*next, take(*next, *arrival));
}

/// What the sender said of a message, or would say.
LinkMessage LinkReceiver::word_of(LinkMessage::Kind kind, const Transfer& transfer,
                                  std::uint64_t bytes) const noexcept {
  LinkMessage word = endpoint_.link_message(kind, transfer);
  word.bytes = bytes;
  return word;
}

}  // namespace brant
