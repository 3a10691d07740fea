// Receives of small messages in host memory over the link of the two processes: the message comes complete in one
// record, so that a record of a receive is its landing and little more, and none is needed if the message came first.

#include "ops/channel/endpoint.h"
#include "ops/channel/table.h"

namespace brant {

/// A message of any size may come for it; this is what is likely, and which record it starts with.
bool ChannelEndpoint::waits_for_small(const Buffer& landing) const noexcept {
  const bool simple = linked_ && landing.bytes <= kEagerBytes && host_accessible(landing.kind) &&
                      (forced_ == Path::automatic || forced_ == Path::shm);
  const bool in_turn = returned_numbers_.empty() && lost_.empty() && next_receive_ < never_comes_ && !peer_.lost;
  return simple && in_turn && engine_.trace() == nullptr;
}

/// The next message has come. False: it is more than a landing is enough for.
bool ChannelEndpoint::take_small(Buffer landing, Op& op) noexcept {
  const std::optional<LinkReceiver::Whole> message = link_receiver_->take_whole(next_receive_, landing);
  if (!message) return false;
  ++traffic_.moves;
  op.result.bytes = message->bytes;
  count_small(next_receive_++, message->bytes, message->acknowledged);
  return true;
}

Status ChannelEndpoint::await_small(Buffer landing, Op& op) noexcept {
  SmallReceive* receive = table_.small_receives().take(*this);
  if (receive == nullptr) [[unlikely]] {
    table_.tell_transfers_limit();
    return Status::limit_reached;
  }
  receive->number = next_receive_++;
  receive->buffer = landing;
  note_begun(*receive);
  link_receiver_->await(*receive);
  receive->own(engine_, op);
  engine_.add_outstanding(peer_, *receive);
  return Status::in_progress;
}

void ChannelEndpoint::count_small(std::uint64_t number, std::size_t bytes, bool acknowledged) noexcept {
  count_received(number, bytes);
  PathTally& path = engine_.counters().path(Path::shm);
  path.receives.add();
  path.bytes_received.add(bytes);
  acknowledge_if_due(number, acknowledged);
}

void ChannelEndpoint::received(SmallReceive& receive, std::size_t bytes, bool acknowledged) noexcept {
  count_small(receive.number, bytes, acknowledged);
  engine_.finish(receive, {Status::ok, bytes});
  release(receive);
}

Transfer* ChannelEndpoint::grown(SmallReceive& receive) noexcept {
  Transfer* transfer = take_transfer(false);
  if (transfer == nullptr) {
    withdraw_small(receive, Status::limit_reached);
    return nullptr;
  }
  transfer->number = receive.number;
  transfer->buffer = receive.buffer;
  transfer->posted_at = receive.posted_at;
  transfer->path = Path::shm;
  transfer->take_over(receive);
  engine_.add_outstanding(peer_, *transfer);
  release(receive);
  return transfer;
}

/// Nobody was told of it, so it ends here and now.
void ChannelEndpoint::withdraw_small(SmallReceive& receive, Status why) noexcept {
  returned_numbers_.push_back(receive.number);
  engine_.finish(receive, {peer_.lost ? Status::peer_lost : why, 0});
  release(receive);
}

void ChannelEndpoint::release(SmallReceive& receive) noexcept {
  link_receiver_->forget(receive);
  engine_.remove_outstanding(peer_, receive);
  table_.small_receives().give_back(&receive);
  note_ended(false);
}

}  // namespace brant
