#include "ops/coll/mail.h"

#include <cstring>

namespace brant::coll {

Status Mail::send(unsigned to, MailKind kind, std::uint64_t call, const CallWords& words,
                  std::span<const std::byte> payload) noexcept {
  am::Message* message = messenger_.make(payload.size());
  if (message == nullptr) return Status::no_memory;
  message->set_header(MailHeader{team_, words.high, words.low, static_cast<std::uint32_t>(call)});
  message->wire.session = static_cast<std::uint16_t>(kind);
  if (!payload.empty()) std::memcpy(message->data, payload.data(), payload.size());
  // What ends a team must not wait for those whom it is to tell.
  const am::Flow flow = kind == MailKind::data ? am::Flow::credit : am::Flow::urgent;
  const Status status = messenger_.send(members_[to], am::ServiceId::coll, *message, flow);
  if (status != Status::ok) messenger_.release(*message);
  return status;
}

void Mail::drop_all() noexcept {
  for (am::MessageList& list : waiting_) {
    while (am::Message* message = list.pop_front()) messenger_.release(*message);
  }
}

}  // namespace brant::coll
