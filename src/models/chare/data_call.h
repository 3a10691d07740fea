#pragma once

#include "brant/chare/detail/data.h"
#include "models/chare/envelope.h"
#include "ops/am/message.h"
#include "ops/lane/data_lanes.h"

namespace brant::detail {

using lane::DataLanes;
using lane::DataPart;

class DataLandings;

/// A call (or broadcast) whose data is coming, or is here and waits for its method to run.
struct DataCall {
  DataLandings* landings = nullptr;
  am::Message* message = nullptr;  ///< Null while staging: it is gone, and nobody wants the data any more.
  ChareBase* chare = nullptr;      ///< Whose landings are being filled; null while staging.
  DataPart* parts = nullptr;       ///< In the order of the arguments.
  std::size_t remaining = 0;       ///< Parts that are not there yet.
  Status status = Status::ok;
  bool wanted = false;      ///< Staging: the message stands in no queue, and goes back when all is here.
  am::MessageList after;    ///< A destroy of the chare, which waits until nothing writes into it, and what follows.
  ListHook<DataCall> hook;  ///< In `DataCalls`.
};

/// Whose argument `part` is.
inline DataCall& call_of(const DataPart& part) noexcept { return *static_cast<DataCall*>(part.owner); }

inline std::byte* data_block(const am::Message& message, const Envelope& envelope) noexcept {
  const std::size_t prefix = (envelope.flags & Envelope::kWide) != 0 ? kWideBytes : 0;
  return message.data + prefix;
}
inline DataHeader data_header(const am::Message& message, const Envelope& envelope) noexcept {
  DataHeader header;
  std::memcpy(&header, data_block(message, envelope), sizeof(header));
  return header;
}
inline void set_data_header(am::Message& message, const Envelope& envelope, const DataHeader& header) noexcept {
  std::memcpy(data_block(message, envelope), &header, sizeof(header));
}
inline const DataMeta* data_metas(const am::Message& message, const Envelope& envelope) noexcept {
  return reinterpret_cast<const DataMeta*>(data_block(message, envelope) + sizeof(DataHeader));
}

template <typename T>
T* place_as(const DataHeader& header) noexcept {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(header.place));
}
template <typename T>
std::uint64_t place_of(T* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

/// A copy of a message uses the sources of its data too.
inline void share_data(const am::Message& message, const Envelope& envelope) noexcept {
  if (envelope.has_data()) DataLanes::share(place_as<DataOrigin>(data_header(message, envelope)));
}

}  // namespace brant::detail
