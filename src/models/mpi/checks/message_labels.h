#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>

#include "models/mpi/match_key.h"
#include "models/mpi/typed_buffer.h"
#include "ops/am/message.h"

namespace brant::mpi {

class ReceiveRequest;

/// What data a message has, as its sender describes it: the payload of `Word::label`.
struct MessageLabel {
  std::uint64_t elements = 0;
  std::uint64_t hash = 0;
  std::uint8_t any = 0;  ///< 1: MPI_PACKED, which fits every receive.
  char text[111] = {};   ///< The basic types in words; ends with a zero.

  /// Throws std::bad_alloc.
  static MessageLabel of(const TypedBuffer& source);
};

/// Compares the data of messages with what their receives have room for. A label travels just before each message of
/// the program. Messages with the same sender, tag and communicator match in the order in which they were sent, so the
/// first label of such a key belongs to the first message that is taken, and messages need no room for labels.
class MessageLabels {
 public:
  /// Whether messages of this context have labels: those of the program between two ranks.
  [[nodiscard]] static bool label(std::uint32_t context) noexcept;

  /// `slot`: of the receiving rank in this process.
  void add(std::uint16_t slot, const MatchKey& key, const MessageLabel& label) noexcept;
  /// That of the message that was taken for a receive just now. Nothing: its sender does not check.
  [[nodiscard]] std::optional<MessageLabel> take(std::uint16_t slot, const MatchKey& key) noexcept;
  /// The same for a message that is received later, under its address.
  void pin(const am::Message& message, std::uint16_t slot, const MatchKey& key) noexcept;
  [[nodiscard]] std::optional<MessageLabel> take_pinned(const am::Message& message) noexcept;

  /// Whether the data is what the receive has room for, or more of it; else `fault_of` says why not. The sender and
  /// the tag are in the request's outcome.
  [[nodiscard]] bool fits(const std::optional<MessageLabel>& label, const ReceiveRequest& request) noexcept;
  /// Empty: it fits.
  [[nodiscard]] std::string fault_of(const ReceiveRequest& request) const;
  /// Of a request that goes.
  void forget(const ReceiveRequest& request) noexcept { faults_.erase(&request); }

 private:
  using Key = std::tuple<std::uint16_t, std::uint32_t, std::int32_t, std::int32_t>;

  std::map<Key, std::deque<MessageLabel>> waiting_;
  std::unordered_map<const am::Message*, MessageLabel> pinned_;
  std::unordered_map<const ReceiveRequest*, std::string> faults_;
};

}  // namespace brant::mpi
