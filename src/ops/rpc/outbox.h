#pragma once

#include <cstddef>

#include "ops/am/messenger.h"
#include "ops/rpc/carrier.h"

namespace brant::remote {

/// What waits here for one peer: calls, in order and bounded, until the peer's window has room; and answers, which wait
/// for no window, until the network takes more. There are no more of those than calls that the peer waits for.
class Outbox {
 public:
  /// As much as a window holds.
  static constexpr std::size_t kBytesMax = std::size_t{am::Messenger::kWindowUnits} * am::Messenger::kUnitBytes;
  static constexpr std::size_t kCallsMax = am::Messenger::kWindowUnits;

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
  Tally waiting_;  ///< Of calls.
};

}  // namespace brant::remote
