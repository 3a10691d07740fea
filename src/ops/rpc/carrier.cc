#include "ops/rpc/carrier.h"

#include <new>

#include "core/joined_rank.h"
#include "ops/rpc/call_header.h"
#include "ops/rpc/data_block.h"

namespace brant::remote {

Status Carrier::send(Rank to, am::Message& message) noexcept {
  const bool has_data = message.header<CallHeader>().data != 0;
  if (has_data && to != self_) [[unlikely]]
    return send_with_data(to, message);
  return messenger_.send(to, am::ServiceId::rpc, message);
}

/// The message goes first, with the numbers that its data will have: one that must wait for room leaves no hole in the
/// numbering.
Status Carrier::send_with_data(Rank to, am::Message& message) noexcept {
  if (to.value < 0 || to.value >= ranks_)
    return joined_rank::is_one(to.value) ? Status::not_supported : Status::invalid_argument;
  const detail::DataHeader before = data_header(message);
  Status status = Status::ok;
  try {
    set_data_header(message, {lanes_.next_number(to.value), detail::DataState::numbers, before.count});
    status = messenger_.send(to, am::ServiceId::rpc, message);
  } catch (const Error& error) {
    status = error.status();
  } catch (const std::bad_alloc&) {
    status = Status::no_memory;
  }
  if (status == Status::ok) {
    lanes_.send(to.value, place_as<lane::DataOrigin>(before));
  } else {
    set_data_header(message, before);
  }
  return status;
}

void Carrier::drop(am::Message& message) noexcept {
  if (message.header<CallHeader>().data != 0)
    lanes_.release(place_as<lane::DataOrigin>(data_header(message)), Status::canceled);
  messenger_.release(message);
}

}  // namespace brant::remote
