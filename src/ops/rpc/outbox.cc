#include "ops/rpc/outbox.h"

namespace brant::remote {

Status Outbox::send_to(Rank peer, Carrier& carrier, unsigned& sent) noexcept {
  Status status = Status::ok;
  while (am::Message* message = status == Status::ok ? answers_.front() : nullptr) {
    answers_.pop_front();
    status = carrier.send_answer(peer, *message, refusals_ < kPatience ? am::Flow::credit : am::Flow::urgent);
    refusals_ = status == Status::limit_reached ? refusals_ + 1 : 0;
    if (status != Status::ok) answers_.push_front(*message);
    if (status == Status::ok) ++sent;
  }
  while (am::Message* message = status == Status::ok ? calls_.front() : nullptr) {
    calls_.pop_front();
    const std::size_t bytes = cost(*message);  // it is gone once it was sent
    status = carrier.send(peer, *message);
    if (status != Status::ok) calls_.push_front(*message);
    if (status == Status::ok) waiting_.remove(bytes);
    if (status == Status::ok) ++sent;
  }
  if (status != Status::ok && status != Status::limit_reached) drop_all(carrier);
  return status;
}

void Outbox::drop_all(Carrier& carrier) noexcept {
  while (am::Message* message = answers_.pop_front()) carrier.messenger().release(*message);
  while (am::Message* message = calls_.pop_front()) carrier.drop(*message);
  waiting_ = {};
}

}  // namespace brant::remote
