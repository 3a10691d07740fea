#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/memory_fence.h"
#include "ops/coll/call_words.h"
#include "ops/coll/fault.h"

/// Turns in memory that all members of a team have mapped. In each turn every member says what it calls and shows some
/// bytes, and sees what all others say and show. Nobody writes where another writes, and nothing is reset: what is
/// written carries the number of its turn.
///
/// Two sets of lines and slots serve in turns. Whoever writes those of turn t has seen all members in turn t - 1, so
/// all of them have ended turn t - 2, which used the same set: nobody reads there any more. That holds only because
/// every member waits for all in every turn.
namespace brant::coll {

inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::size_t kLinePayload = 48;
inline constexpr std::size_t kSlotBytes = std::size_t{64} << 10;

/// What one member says in one turn.
struct alignas(kLineBytes) TurnLine {
  std::atomic<std::uint32_t> turn;  ///< Written last.
  std::uint32_t low;                ///< CallWords.
  std::uint64_t high;
  std::byte payload[kLinePayload];

  [[nodiscard]] CallWords words() const noexcept { return {high, low}; }
};
static_assert(sizeof(TurnLine) == kLineBytes && std::atomic<std::uint32_t>::is_always_lock_free);

/// One member's view of the board.
class TurnBoard {
 public:
  /// Of zeroed memory that all members see; at each of them the same number of members and the same first turn.
  TurnBoard(std::byte* memory, unsigned members, unsigned self, std::uint32_t first_turn = 1) noexcept
      : memory_(memory), members_(members), self_(self), turn_(first_turn) {}

  /// 256-byte aligned memory of this size serves a team of so many.
  static constexpr std::size_t bytes_for(unsigned members) noexcept {
    return lines_bytes(members) + std::size_t{2} * members * kSlotBytes;
  }

  [[nodiscard]] std::uint32_t turn() const noexcept { return turn_; }
  /// Where this member puts what it shows in this turn: before `publish`.
  [[nodiscard]] std::byte* own_slot() noexcept { return slot_of(self_, turn_); }
  [[nodiscard]] std::byte* own_payload() noexcept { return line_of(self_).payload; }
  /// The slot of the next turn, which nobody reads any more once `all_here` held in this one.
  [[nodiscard]] std::byte* own_next_slot() noexcept { return slot_of(self_, turn_ + 1); }

  /// This member is in the turn. What it has put is visible to whoever sees that.
  void publish(const CallWords& words) noexcept {
    TurnLine& line = line_of(self_);
    line.low = words.low;
    line.high = words.high;
    line.turn.store(turn_, std::memory_order_release);
  }

  /// ok: all members are in this turn, and call this. in_progress: not all have come. Else `fault` says who calls
  /// something else, by its place on this board. Cheap to repeat.
  Status meet(const CallWords& words, Fault& fault) noexcept {
    for (; seen_ < members_ && is_here(seen_); ++seen_) {
      const CallWords theirs = line_of(seen_).words();
      if (theirs == words) continue;
      fault.why = Fault::Why::other_call;
      fault.member = seen_;
      fault.theirs = theirs;
      return fault.status();
    }
    return seen_ < members_ ? Status::in_progress : Status::ok;
  }
  /// The first member that is not in this turn; where all are, the last one.
  [[nodiscard]] unsigned awaited() const noexcept {
    unsigned member = 0;
    while (member + 1 < members_ && is_here(member)) ++member;
    return member;
  }
  [[nodiscard]] bool is_here(unsigned member) const noexcept {
    return line_of(member).turn.load(std::memory_order_acquire) == turn_;
  }
  /// What a member that is here says and shows.
  [[nodiscard]] const TurnLine& line(unsigned member) const noexcept { return line_of(member); }
  [[nodiscard]] const std::byte* slot(unsigned member) const noexcept { return slot_of(member, turn_); }

  /// This member's call has failed: who reads its memory still, must not believe what he reads. What its caller does
  /// to that memory afterwards is not seen before this is.
  void desert() noexcept {
    desertion_of(self_).store(1, std::memory_order_relaxed);
    memory_fence(std::memory_order_seq_cst);
  }
  /// Some member did. Asked after reading: if not, what was read is what the members gave.
  [[nodiscard]] bool is_deserted() const noexcept {
    memory_fence(std::memory_order_acquire);
    for (unsigned m = 0; m < members_; ++m) {
      if (desertion_of(m).load(std::memory_order_relaxed) != 0) return true;
    }
    return false;
  }

  /// All were seen, and what they show was taken.
  void end_turn() noexcept {
    ++turn_;
    seen_ = 0;
  }

 private:
  static constexpr std::size_t kLineStride = 2 * kLineBytes;  // lines are fetched in pairs

  static constexpr std::size_t lines_bytes(unsigned members) noexcept {
    constexpr std::size_t kPage = 4096;
    return (std::size_t{2} * members * kLineStride + kPage - 1) / kPage * kPage;
  }
  [[nodiscard]] std::size_t place(unsigned member, std::uint32_t turn) const noexcept {
    return std::size_t{turn & 1u} * members_ + member;
  }
  [[nodiscard]] TurnLine& line_of(unsigned member) const noexcept {
    return *reinterpret_cast<TurnLine*>(memory_ + place(member, turn_) * kLineStride);
  }
  /// Behind the member's first line, where nobody looks but who has read.
  [[nodiscard]] std::atomic<std::uint32_t>& desertion_of(unsigned member) const noexcept {
    return *reinterpret_cast<std::atomic<std::uint32_t>*>(memory_ + member * kLineStride + kLineBytes);
  }
  [[nodiscard]] std::byte* slot_of(unsigned member, std::uint32_t turn) const noexcept {
    return memory_ + lines_bytes(members_) + place(member, turn) * kSlotBytes;
  }

  std::byte* memory_;
  unsigned members_;
  unsigned self_;
  std::uint32_t turn_;
  unsigned seen_ = 0;
};

}  // namespace brant::coll
