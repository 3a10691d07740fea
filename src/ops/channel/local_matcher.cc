#include "ops/channel/local_matcher.h"

#include <utility>

#include "base/copy_small.h"
#include "base/log.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/table.h"

namespace brant {

LocalMatcher::LocalMatcher(ChannelEndpoint& end) noexcept
    : end_(end), early_(end.table().pools().arrivals, end.table().stages(), nullptr) {}

LocalMatcher::~LocalMatcher() {
  if (other_ != nullptr) other_->other_ = nullptr;
}

// A message comes first
// ----------------------------------------------------------------------------------------------------------------

Status LocalMatcher::send(Transfer& send) noexcept {
  if (Transfer* receive = other_ != nullptr ? find_number(other_->posted_, send.number) : nullptr) {
    const Status status = move(send, *receive);
    if (status == Status::in_progress) other_->posted_.remove(*receive);
    if (status == Status::ok || status == Status::truncated) other_->end_receive(*receive, status);
    return status;
  }
  const Buffer& bytes = send.here;
  if (bytes.bytes > kEagerBytes) {
    wait_for_receive(send);
    return Status::in_progress;
  }
  if (bytes.bytes == 0 || host_accessible(bytes.kind)) {
    if (keep_copy(send.number, bytes, send.acknowledged)) return Status::ok;
  } else if (end_.moves().stage_out(send) == Status::in_progress) {
    send.path = Path::staged;
    return Status::in_progress;
  }
  wait_for_receive(send);
  return Status::in_progress;
}

bool LocalMatcher::send_at_once(std::uint64_t number, ConstBuffer bytes) noexcept {
  Transfer* receive = other_ != nullptr ? find_number(other_->posted_, number) : nullptr;
  if (receive == nullptr) return keep_copy(number, bytes, false);
  if (bytes.bytes > receive->here.bytes || !host_accessible(receive->here.kind)) return false;
  copy_small(receive->here.data, bytes.data, bytes.bytes);
  receive->wire().bytes = bytes.bytes;
  receive->path = Path::shm;
  other_->end_receive(*receive, Status::ok);
  return true;
}

/// False: there is no memory for it, and the message waits for its receive.
bool LocalMatcher::keep_copy(std::uint64_t number, ConstBuffer bytes, bool acknowledged) noexcept {
  LinkMessage message = end_.link_message(LinkMessage::Kind::eager);
  message.number = number;
  message.bytes = bytes.bytes;
  message.acknowledged = acknowledged;
  return early_.keep(message, std::span(static_cast<const std::byte*>(bytes.data), bytes.bytes)) == Status::ok;
}

void LocalMatcher::wait_for_receive(Transfer& send) noexcept {
  send.become(TransferState::asking);
  waiting_.push_back(send);
}

// A receive comes first
// ----------------------------------------------------------------------------------------------------------------

Status LocalMatcher::receive(Transfer& receive) noexcept {
  Arrival* const early = other_ != nullptr ? other_->early_.find(receive.number) : nullptr;
  if (early != nullptr) return take_early(receive, *early);
  receive.become(TransferState::posted);
  Transfer* const send = other_ != nullptr ? find_number(other_->waiting_, receive.number) : nullptr;
  const bool gone = send != nullptr && other_->end_.moves().source_is_gone(*send);
  if (gone) {
    other_->waiting_.remove(*send);
    other_->end_.moves().end_without_source(*send);
  }
  if (send == nullptr || gone) {
    posted_.push_back(receive);
    return Status::in_progress;
  }
  const Status status = move(*send, receive);
  if (status != Status::in_progress && status != Status::ok && status != Status::truncated) return status;
  other_->waiting_.remove(*send);
  other_->end_.carried(*send, status);
  return status;
}

Status LocalMatcher::take_early(Transfer& receive, Arrival& early) noexcept {
  const Status landed = end_.moves().land(receive, early.payload());
  if (landed != Status::ok && landed != Status::truncated) return landed;  // kept for the next receive
  receive.wire().bytes = early.message.bytes;
  receive.acknowledged = early.message.acknowledged;
  if (landed == Status::ok && early.message.bytes != 0) {
    receive.path = host_accessible(receive.here.kind) ? Path::shm : Path::staged;
  }
  other_->early_.give_back(early);
  return landed;
}

// They meet
// ----------------------------------------------------------------------------------------------------------------

/// The bytes go from one to the other. in_progress: `copied` follows. ok, truncated: that was all. Others: nothing has
/// happened to either.
Status LocalMatcher::move(Transfer& send, Transfer& receive) noexcept {
  const std::size_t bytes = send.here.bytes;
  receive.wire().bytes = bytes;
  receive.acknowledged = send.acknowledged;
  if (bytes > receive.here.bytes) {
    receive.sender_knows = true;
    send.endpoint.sends().note_truncated(send.number);
    return Status::truncated;
  }
  const Path path = path_between(send, receive);
  if (path == Path::shm && bytes <= CpuCopier::kTurnBytes) {
    if (bytes != 0) CpuCopier::copy(receive.here.data, send.here.data, bytes);
    receive.path = path;
    if (!send.is_staged()) send.path = path;
    return Status::ok;
  }
  // No shapes: a send that has some was packed.
  const Status status = send.endpoint.moves().start(
      send, TransferState::copying,
      {MoveEnd(receive.here.data, receive.here.kind), MoveEnd(send.here.data, send.here.kind), bytes, nullptr, path});
  if (status != Status::in_progress) return status;
  receive.become(TransferState::pulling);
  send.mate = &receive;
  receive.mate = &send;
  return status;
}

/// As of a put within one process: whoever moves the bytes reaches both ends.
Path LocalMatcher::path_between(const Transfer& send, const Transfer& receive) noexcept {
  const MemoryKind from = send.here.kind, to = receive.here.kind;
  const bool host_here = host_accessible(from), host_there = host_accessible(to);
  if ((host_here && host_there) || send.here.bytes == 0) return Path::shm;
  PathQuery query;
  query.kind = from;
  query.other_kind = to;
  query.bytes = send.here.bytes;
  query.locality = Locality::same_process;
  query.wire_takes_kind = false;
  query.peer_maps = query.one_sided = true;
  query.pinned_here = (host_here ? from : to) == MemoryKind::pinned;
  if (!host_here && !host_there) query.courier_bytes = end_.table().mover().courier_bytes();
  query.forced = end_.paths().forced();
  const PathOrder& order = end_.engine().path_order();
  const PathChoice choice = choose_path(query, order);
  if (choice.status == Status::ok) return choice.path;
  query.forced = Path::automatic;  // what was forced cannot reach the memory of the other end
  return choose_path(query, order).path;
}

void LocalMatcher::copied(Transfer& send, Status status) noexcept {
  Transfer& receive = *std::exchange(send.mate, nullptr);
  receive.mate = nullptr;
  const Path path = send.move->path;
  if (receive.ghost) {
    receive.become(TransferState::carried);
    receive.endpoint.receives().end(receive, {Status::canceled, 0});
    if (status == Status::ok) return move_or_wait(send);
  } else {
    receive.path = path;
    receive.lost = receive.sender_knows = status != Status::ok;
    receive.endpoint.carried(receive, status);
  }
  if (!send.is_staged()) send.path = path;
  end_.carried(send, status);
}

/// Its receive was taken back: the message is for the one that got its turn.
void LocalMatcher::move_or_wait(Transfer& send) noexcept {
  send.become(TransferState::asking);
  end_.carried(send, this->send(send));
}

void LocalMatcher::end_receive(Transfer& receive, Status status) noexcept {
  posted_.remove(receive);
  end_.carried(receive, status);
}

// One is taken back
// ----------------------------------------------------------------------------------------------------------------

bool LocalMatcher::withdraw_send(Transfer& send) noexcept {
  if (send.state() != TransferState::asking) return false;
  waiting_.remove(send);
  send.become(TransferState::carried);
  return true;
}

void LocalMatcher::let_go(Transfer& send) noexcept {
  // Others end by themselves.
  if (withdraw_send(send)) end_.sends().fail(send, Status::canceled);
}

void LocalMatcher::withdraw_receive(Transfer& receive) noexcept {
  if (receive.state() == TransferState::posted) return end_receive(receive, Status::canceled);
  // Who waits for the outcome keeps the landing, and the copy ends by itself. Else it is stopped if that can be done,
  // and goes to the next receive.
  if (receive.observed() || receive.ghost || receive.state() != TransferState::pulling) return;
  Transfer& send = *receive.mate;
  receive.ghost = true;
  end_.receives().return_turn(receive);
  if (end_.table().mover().withdraw(*send.move)) other_->copied(send, Status::ok);
}

bool LocalMatcher::end_lost(const LostMessage& message) noexcept {
  Transfer* const receive = find_number(posted_, message.number);
  if (receive == nullptr) return false;
  receive->note_lost(message.bytes, message.sender_knows);
  end_receive(*receive, message.status);
  return true;
}

void LocalMatcher::drop(std::uint64_t number) noexcept {
  Arrival* const early = other_ != nullptr ? other_->early_.find(number) : nullptr;
  if (early != nullptr) other_->early_.give_back(*early);
}

}  // namespace brant
