#pragma once

#include <cstdint>
#include <unordered_map>

#include "ops/channel/control.h"

namespace brant {

class ChannelEndpoint;
class ChannelTable;
struct Peer;

/// What channels have to say when a program ends: how much each end has sent, so that the other end knows what still
/// comes, and ends the rest of its receives at once.
class LastWords {
 public:
  explicit LastWords(ChannelTable& table) noexcept : table_(table) {}

  /// Of this program. Returns how many there are.
  unsigned say(Peer& peer) noexcept;
  void on_word(const ChannelControl& control) noexcept;
  /// The farewell has come; the words may come later.
  void on_farewell(Peer& peer) noexcept;
  /// Ends what waits in vain, if the program of the other end has ended and has said how much it sent.
  void end_if_known(ChannelEndpoint& endpoint) noexcept;
  /// That peer has left, and its rank is no other's.
  void forget(std::int32_t rank) noexcept;

 private:
  struct Heard {
    std::uint32_t words = 0;
    Peer* ended = nullptr;  ///< Once the farewell has come too.
  };

  void end_all_of(const Peer& peer) noexcept;
  [[nodiscard]] bool has_all_of(const Peer& peer) const noexcept;

  ChannelTable& table_;
  std::unordered_map<std::uint64_t, std::uint64_t> sent_there_;  ///< By ends of programs that have ended.
  std::unordered_map<std::int32_t, Heard> heard_;                ///< By rank.
};

}  // namespace brant
