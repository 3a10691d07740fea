#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/coll/extent.h"
#include "ops/coll/plan.h"
#include "ops/coll/turn_board.h"
#include "ops/coll/work.h"

namespace brant::coll {

/// One call over the board: each round is a turn, in which a member puts what it gives, and takes what concerns it once
/// all are there.
class BoardRounds {
 public:
  BoardRounds(TurnBoard& board, const Members& members, const Work& work, const Plan& plan) noexcept
      : board_(board), members_(members), work_(work), plan_(plan) {}

  /// Before the turn is published.
  void put(std::uint64_t round) noexcept;
  /// Once all are there.
  void take(std::uint64_t round) noexcept;
  /// The only round, of what all have shown: `room` bytes of each member, one behind the other.
  void take_from(const std::byte* rooms, std::size_t room) noexcept {
    rooms_ = rooms;
    room_bytes_ = room;
    take(0);
  }
  /// Of a call of uneven blocks, once all are there in the first one: as many as the member needs that needs most.
  [[nodiscard]] std::uint64_t rounds() const noexcept;

 private:
  [[nodiscard]] bool in_lines() const noexcept { return plan_.algorithm == Algorithm::lines; }
  [[nodiscard]] bool wants_result() const noexcept;
  [[nodiscard]] std::byte* own_room() noexcept { return in_lines() ? board_.own_payload() : board_.own_slot(); }
  [[nodiscard]] const std::byte* room(unsigned member) const noexcept {
    if (rooms_ != nullptr) return rooms_ + member * room_bytes_;
    return in_lines() ? board_.line(member).payload : board_.slot(member);
  }
  [[nodiscard]] Extent slice(unsigned member, std::uint64_t round) const noexcept;
  /// Combines what members [0, `count`) give: this member's at `own`, the others' in their rooms at `offset`. `also`
  /// gets the same, where it is given.
  void fold_rooms(unsigned count, std::size_t offset, const std::byte* own, std::byte* out, std::uint64_t bytes,
                  std::byte* also = nullptr) noexcept;

  void put_piece(const std::byte* from, std::uint64_t bytes, std::uint64_t round) noexcept;
  void put_blocks(std::uint64_t round) noexcept;
  void put_slices(std::uint64_t round) noexcept;
  void take_broadcast(std::uint64_t round) noexcept;
  void take_combined(std::uint64_t round) noexcept;
  void take_prefix(std::uint64_t round) noexcept;
  void take_blocks(std::uint64_t round) noexcept;
  void take_exchanged(std::uint64_t round) noexcept;
  void take_scattered(std::uint64_t round) noexcept;
  void take_own_block_combined(std::uint64_t round) noexcept;
  void take_slices(std::uint64_t round) noexcept;

  TurnBoard& board_;
  const Members& members_;
  const Work& work_;
  const Plan& plan_;
  const std::byte* rooms_ = nullptr;  ///< Null: those of the board.
  std::size_t room_bytes_ = 0;
};

}  // namespace brant::coll
