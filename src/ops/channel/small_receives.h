#pragma once

#include <span>

#include "ops/channel/transfer.h"

namespace brant {

/// Receives of small messages in host memory over the link of the two processes: the message comes complete in one
/// record, so that the record of a receive is its landing and little more, and none is needed if the message came
/// first.
class ChannelSmallReceives {
 public:
  explicit ChannelSmallReceives(ChannelEndpoint& end) noexcept : end_(end) {}

  /// A message of any size may come for it; this is what is likely, and which record it starts with.
  [[nodiscard]] bool suits(const Buffer& landing) const noexcept;
  /// The next message is for `landing`. in_progress, limit_reached, no_memory; not_supported: it has come, and is more
  /// than a landing is enough for.
  Status receive(Buffer landing, Op& op) noexcept;
  /// A message came complete. False: no small receive waits for it, or it is too long for that.
  bool land(std::uint64_t number, std::span<const std::byte> payload, bool acknowledged) noexcept;
  /// The message is no small one, or comes another way: its receive goes on as this. Null if there is no such receive,
  /// or no record is left: then it has ended, and the next receive gets its turn.
  Transfer* grow(std::uint64_t number) noexcept {
    SmallReceive* receive = find(number);
    return receive != nullptr ? grow(*receive) : nullptr;
  }
  void withdraw(SmallReceive& receive, Status why) noexcept;

 private:
  bool take_arrived(std::uint64_t number, Buffer landing, Op& op) noexcept;
  Status await(std::uint64_t number, Buffer landing, Op& op) noexcept;
  [[nodiscard]] SmallReceive* find(std::uint64_t number) noexcept {
    SmallReceive* receive = waiting_.front();
    while (receive != nullptr && receive->number < number) receive = decltype(waiting_)::next(*receive);
    return receive != nullptr && receive->number == number ? receive : nullptr;
  }
  Transfer* grow(SmallReceive& receive) noexcept;
  void give_back(SmallReceive& receive) noexcept;

  ChannelEndpoint& end_;
  IntrusiveList<SmallReceive, &SmallReceive::hook> waiting_;  ///< By number. The sender need not know of them.
};

}  // namespace brant
