#include "models/chare/messages.h"

#include <fmt/format.h>

namespace brant::detail {

am::Message& Messages::make(const Envelope& envelope, std::size_t bytes) {
  am::Message* message = context_.messenger.make(bytes);
  if (message == nullptr) {
    throw Error(Status::no_memory, fmt::format("rank {}: no memory for a message of {} bytes", context_.rank, bytes));
  }
  message->set_header(envelope);
  message->wire.session = context_.session;
  return *message;
}

}  // namespace brant::detail
