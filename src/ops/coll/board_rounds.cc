#include "ops/coll/board_rounds.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace brant::coll {
namespace {

using Kind = CollectiveKind;

/// Where in a slot the results of the last round lie, behind what is given in this one.
constexpr std::size_t kResultsAt = kSlotBytes / 2;

void copy_bytes(std::byte* to, const std::byte* from, std::uint64_t bytes) noexcept {
  if (bytes != 0 && to != from) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace

bool BoardRounds::wants_result() const noexcept {
  return (work_.kind != Kind::reduce && work_.kind != Kind::gather) || work_.is_root(members_);
}

Extent BoardRounds::slice(unsigned member, std::uint64_t round) const noexcept {
  return slice_of(work_.bytes, work_.element, plan_, members_.count, member, round);
}

void BoardRounds::fold_rooms(unsigned count, std::size_t offset, const std::byte* own, std::byte* out,
                             std::uint64_t bytes, std::byte* also) noexcept {
  const void* inputs[kBoardMembersMax];
  for (unsigned m = 0; m < count; ++m) inputs[m] = m == members_.self ? own : room(m) + offset;
  fold(work_.folding, std::span(inputs, count), out, bytes / work_.element, also);
}

void BoardRounds::put_piece(const std::byte* from, std::uint64_t bytes, std::uint64_t round) noexcept {
  const Extent piece = piece_of(bytes, plan_.piece, round);
  copy_bytes(own_room(), from + piece.offset, piece.bytes);
}

/// A piece for each other member.
void BoardRounds::put_blocks(std::uint64_t round) noexcept {
  std::uint64_t block = 0;
  for (unsigned m = 0; m < members_.count; ++m) {
    const std::uint64_t bytes = work_.in_block_bytes(m);
    const Extent piece = piece_of(bytes, plan_.piece, round);
    if (m != members_.self) copy_bytes(own_room() + m * plan_.piece, work_.in + block + piece.offset, piece.bytes);
    block += bytes;
  }
}

/// The result of the last round lies in this slot already: see `take_slices`.
void BoardRounds::put_slices(std::uint64_t round) noexcept {
  for (unsigned m = 0; m < members_.count; ++m) {
    if (m == members_.self) continue;
    const Extent theirs = slice(m, round);
    copy_bytes(board_.own_slot() + m * plan_.piece, work_.in + theirs.offset, theirs.bytes);
  }
}

void BoardRounds::put(std::uint64_t round) noexcept {
  if (work_.uneven && round == 0) std::memcpy(board_.own_payload(), &plan_.rounds, sizeof(plan_.rounds));
  if (plan_.algorithm == Algorithm::slices) return put_slices(round);
  switch (work_.kind) {
    case Kind::broadcast:
      if (work_.is_root(members_)) put_piece(work_.in, work_.bytes, round);
      return;
    case Kind::allreduce:
    case Kind::reduce:
    case Kind::scan:
    case Kind::exscan: return put_piece(work_.in, work_.bytes, round);
    case Kind::allgather:
    case Kind::gather: return put_piece(work_.in, work_.block_bytes(members_.self), round);
    case Kind::scatter:
      if (work_.is_root(members_)) put_blocks(round);
      return;
    case Kind::alltoall:
    case Kind::reduce_scatter: return put_blocks(round);
    case Kind::barrier:
    case Kind::neighbour_allgather:
    case Kind::neighbour_alltoall:
    case Kind::none: return;
  }
}

void BoardRounds::take_broadcast(std::uint64_t round) noexcept {
  if (work_.is_root(members_)) return;
  const Extent piece = piece_of(work_.bytes, plan_.piece, round);
  copy_bytes(work_.out + piece.offset, room(work_.root), piece.bytes);
}

void BoardRounds::take_combined(std::uint64_t round) noexcept {
  if (!wants_result()) return;
  const Extent piece = piece_of(work_.bytes, plan_.piece, round);
  fold_rooms(members_.count, 0, work_.in + piece.offset, work_.out + piece.offset, piece.bytes);
}

void BoardRounds::take_prefix(std::uint64_t round) noexcept {
  const Extent piece = piece_of(work_.bytes, plan_.piece, round);
  const unsigned count = members_.self + (work_.kind == Kind::scan ? 1 : 0);
  if (count != 0) fold_rooms(count, 0, work_.in + piece.offset, work_.out + piece.offset, piece.bytes);
}

void BoardRounds::take_blocks(std::uint64_t round) noexcept {
  if (!wants_result()) return;
  std::uint64_t block = 0;
  for (unsigned m = 0; m < members_.count; ++m) {
    const std::uint64_t bytes = work_.block_bytes(m);
    const Extent piece = piece_of(bytes, plan_.piece, round);
    const std::byte* from = m == members_.self ? work_.in + piece.offset : room(m);
    copy_bytes(work_.out + block + piece.offset, from, piece.bytes);
    block += bytes;
  }
}

void BoardRounds::take_exchanged(std::uint64_t round) noexcept {
  std::uint64_t block = 0;
  for (unsigned m = 0; m < members_.count; ++m) {
    const std::uint64_t bytes = work_.block_bytes(m);
    const Extent piece = piece_of(bytes, plan_.piece, round);
    const std::byte* from =
        m == members_.self ? work_.in + work_.in_block_offset(m) + piece.offset : room(m) + members_.self * plan_.piece;
    copy_bytes(work_.out + block + piece.offset, from, piece.bytes);
    block += bytes;
  }
}

void BoardRounds::take_scattered(std::uint64_t round) noexcept {
  if (work_.out == nullptr) return;  // the root's block stays where it is
  const unsigned self = members_.self;
  const bool is_root = work_.is_root(members_);
  const Extent piece = piece_of(is_root ? work_.in_block_bytes(self) : work_.bytes, plan_.piece, round);
  const std::byte* from =
      is_root ? work_.in + work_.in_block_offset(self) + piece.offset : room(work_.root) + self * plan_.piece;
  copy_bytes(work_.out + piece.offset, from, piece.bytes);
}

void BoardRounds::take_own_block_combined(std::uint64_t round) noexcept {
  const Extent piece = piece_of(work_.in_block_bytes(members_.self), plan_.piece, round);
  const std::byte* own = work_.in + work_.in_block_offset(members_.self) + piece.offset;
  fold_rooms(members_.count, members_.self * plan_.piece, own, work_.out + piece.offset, piece.bytes);
}

std::uint64_t BoardRounds::rounds() const noexcept {
  std::uint64_t most = 1;
  for (unsigned m = 0; m < members_.count; ++m) {
    std::uint64_t rounds = 0;
    std::memcpy(&rounds, board_.line(m).payload, sizeof(rounds));
    most = std::max(most, rounds);
  }
  return most;
}

/// The slice is combined where the next turn shows it: nobody reads there any more.
void BoardRounds::take_slices(std::uint64_t round) noexcept {
  if (round > 0 && wants_result()) {
    for (unsigned m = 0; m < members_.count; ++m) {
      if (m == members_.self) continue;
      const Extent theirs = slice(m, round - 1);
      copy_bytes(work_.out + theirs.offset, board_.slot(m) + kResultsAt, theirs.bytes);
    }
  }
  const Extent own = slice(members_.self, round);
  if (own.bytes == 0) return;
  std::byte* const result = board_.own_next_slot() + kResultsAt;
  std::byte* const here = wants_result() ? work_.out + own.offset : nullptr;
  fold_rooms(members_.count, members_.self * plan_.piece, work_.in + own.offset, result, own.bytes, here);
}

void BoardRounds::take(std::uint64_t round) noexcept {
  if (plan_.algorithm == Algorithm::slices) return take_slices(round);
  switch (work_.kind) {
    case Kind::broadcast: return take_broadcast(round);
    case Kind::allreduce:
    case Kind::reduce: return take_combined(round);
    case Kind::scan:
    case Kind::exscan: return take_prefix(round);
    case Kind::allgather:
    case Kind::gather: return take_blocks(round);
    case Kind::scatter: return take_scattered(round);
    case Kind::alltoall: return take_exchanged(round);
    case Kind::reduce_scatter: return take_own_block_combined(round);
    case Kind::barrier:
    case Kind::neighbour_allgather:
    case Kind::neighbour_alltoall:
    case Kind::none: return;
  }
}

}  // namespace brant::coll
