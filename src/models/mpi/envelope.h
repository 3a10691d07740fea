#pragma once

#include <cstdint>

#include "models/mpi/match_key.h"
#include "ops/am/message.h"

namespace brant::mpi {

/// What a message between ranks says.
enum class Word : std::uint8_t {
  eager = 1,          ///< The data is in it.
  eager_synchronous,  ///< The same; the sender waits for `matched`.
  accompanied,        ///< Its data leaves with it, by the lane: small data of a device.
  request,            ///< Data that waits at its sender for `clear`.
  clear,              ///< To the sender: there is a receive for it.
  data,               ///< To the receiver: by which number of the lane it comes.
  matched,            ///< To the sender: a receive has taken it.
  credits,            ///< To the sender: receives have taken so many that were accompanied.
  knock,              ///< To the process that has opened a port: somebody wants to connect to it.
  answered,           ///< To the one that has knocked.
  parting,            ///< To a connected process of another job: this one is in MPI_Finalize or MPI_Comm_disconnect.
  met,                ///< To a process of another job, by the connection that the two are to use from now on.
  label,              ///< Before a message of the program, where calls are checked: what data that has.
};

/// The header of every message. `target` and, in `Announcement`, `from` number the ranks of one process.
struct Envelope {
  Word word{};
  std::uint8_t unused = 0;
  std::uint16_t target = 0;
  std::uint32_t context = 0;
  std::int32_t source = 0;
  std::int32_t tag = 0;
  std::uint64_t ticket = 0;  ///< Of the sender's request; in `data` of the receiver's.

  [[nodiscard]] MatchKey key() const noexcept { return {context, source, tag}; }
};
static_assert(sizeof(Envelope) <= am::kHeaderBytesMax);

/// The payload of `request`.
struct Announcement {
  std::uint64_t bytes = 0;
  std::uint64_t from = 0;
};

/// The payload of `clear`.
struct Clearance {
  std::uint64_t ticket = 0;  ///< Of the receiver's request.
};

/// The payload of `data` and `accompanied`.
struct Consignment {
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  MemoryKind kind = MemoryKind::host;  ///< Of the source.
  std::uint8_t unused[7] = {};
};

/// The payload of `knock`, `answered`, `parting` and `met`.
struct DoorWord {
  /// In `parting` the context of a communicator, and 1; 0: MPI_Finalize. In `met` the label of the two groups that
  /// meet.
  std::uint64_t port = 0;
  std::int32_t tag = 0;      ///< Chosen by the one that knocks, for all that the two say to each other.
  std::uint32_t opened = 0;  ///< In `answered`: MPI_Comm_accept has taken it; 0: the port is not open, or no more.
};

/// The payload of a word of the protocol, which has its size.
template <typename Body>
[[nodiscard]] Body body_of(const am::Message& message) noexcept {
  Body body;
  std::memcpy(&body, message.data, sizeof body);
  return body;
}

/// How many bytes of data a message that can be received is about.
[[nodiscard]] inline std::size_t data_bytes(const am::Message& message) noexcept {
  switch (message.header<Envelope>().word) {
    case Word::request: return static_cast<std::size_t>(body_of<Announcement>(message).bytes);
    case Word::accompanied: return static_cast<std::size_t>(body_of<Consignment>(message).bytes);
    default: return message.bytes;
  }
}

}  // namespace brant::mpi
