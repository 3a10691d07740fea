#pragma once

#include <cstddef>

#include "ops/am/messenger.h"
#include "ops/rpc/carrier.h"

namespace brant::remote {

/// What waits here for one peer: calls, in order and bounded, until the peer's window has room; and answers, of which
/// there are no more than calls that the peer waits for. They wait for room too, but not for ever: their receiver may
/// only release what fills the window once it has the answer. Who is urgent at once overtakes the ring of a peer of
/// this host, which is full for a moment now and then, and all behind it waits for what comes by the network.
class Outbox {
 public:
  /// As much as a window holds.
  static constexpr std::size_t kBytesMax = std::size_t{am::Messenger::kWindowUnits} * am::Messenger::kUnitBytes;
  static constexpr std::size_t kCallsMax = am::Messenger::kWindowUnits;
  static constexpr unsigned kPatience = 256;  ///< Looks for room until an answer is urgent.

  /// Of the messages of one target that wait.
  struct Tally {
    std::size_t calls = 0;
    std::size_t bytes = 0;

    /// Another one fits, or it is the only one.
    [[nodiscard]] bool takes(std::size_t more) const noexcept {
      return calls == 0 || (calls < kCallsMax && bytes + more <= kBytesMax);
    }
    void add(std::size_t more) noexcept {
      ++calls;
      bytes += more;
    }
    void remove(std::size_t less) noexcept {
      --calls;
      bytes -= less;
    }
  };

  [[nodiscard]] bool empty() const noexcept { return calls_.empty() && answers_.empty(); }
  [[nodiscard]] bool has_calls() const noexcept { return !calls_.empty(); }
  [[nodiscard]] bool has_answers() const noexcept { return !answers_.empty(); }
  [[nodiscard]] const Tally& waiting() const noexcept { return waiting_; }

  /// False: there is no room.
  bool keep_call(am::Message& message) noexcept {
    if (!waiting_.takes(cost(message))) return false;
    waiting_.add(cost(message));
    calls_.push_back(message);
    return true;
  }
  void keep_answer(am::Message& message) noexcept { answers_.push_back(message); }

  /// Sends what finds room. limit_reached: not all did; anything else but ok is for good, and nothing waits any more.
  Status send_to(Rank peer, Carrier& carrier, unsigned& sent) noexcept;
  void drop_all(Carrier& carrier) noexcept;

  [[nodiscard]] static std::size_t cost(const am::Message& message) noexcept {
    return message.bytes + sizeof(am::Message);
  }

 private:
  am::MessageList calls_;
  am::MessageList answers_;
  unsigned refusals_ = 0;  ///< In a row, of the first answer.
  Tally waiting_;          ///< Of calls.
};

}  // namespace brant::remote
