#include "ops/rpc/outbox.h"

namespace brant::remote {

Status Outbox::send_answer(Rank peer, am::Messenger& messenger, am::Message& message) noexcept {
  const Status status = messenger.send(peer, am::ServiceId::rpc, message);
  return status == Status::limit_reached ? messenger.send(peer, am::ServiceId::rpc, message, am::Flow::urgent) : status;
}

Status Outbox::send_to(Rank peer, am::Messenger& messenger, unsigned& sent) noexcept {
  Status status = Status::ok;
  while (am::Message* message = status == Status::ok ? answers_.front() : nullptr) {
    answers_.pop_front();
    status = send_answer(peer, messenger, *message);
    if (status != Status::ok) answers_.push_front(*message);
    if (status == Status::ok) ++sent;
  }
  while (am::Message* message = status == Status::ok ? calls_.front() : nullptr) {
    calls_.pop_front();
    const std::size_t bytes = cost(*message);  // it is gone once it was sent
    status = messenger.send(peer, am::ServiceId::rpc, *message);
    if (status != Status::ok) calls_.push_front(*message);
    if (status == Status::ok) waiting_.remove(bytes);
    if (status == Status::ok) ++sent;
  }
  if (status != Status::ok && status != Status::limit_reached) drop_all(messenger);
  return status;
}

void Outbox::drop_all(am::Messenger& messenger) noexcept {
  while (am::Message* message = answers_.pop_front()) messenger.release(*message);
  while (am::Message* message = calls_.pop_front()) messenger.release(*message);
  waiting_ = {};
}

}  // namespace brant::remote
