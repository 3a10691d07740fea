#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/coll/plan.h"

namespace brant::coll {

/// Some bytes of a vector or block.
struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// What one round moves of `bytes`, of which every round moves a piece.
constexpr Extent piece_of(std::uint64_t bytes, std::uint64_t piece, std::uint64_t round) noexcept {
  const std::uint64_t offset = std::min(piece * round, bytes);
  return {offset, std::min(piece, bytes - offset)};
}

/// The slice of a member of what one round moves of a vector, where each combines one: those of the last round are
/// smaller, and some of them may be empty. Slices are whole elements, and whole lines if pieces are.
constexpr Extent slice_of(std::uint64_t bytes, std::size_t element, const Plan& plan, unsigned members, unsigned member,
                          std::uint64_t round) noexcept {
  constexpr std::uint64_t kLine = 64;
  const Extent all = piece_of(bytes, plan.piece * members, round);
  const std::uint64_t grain = plan.piece % kLine == 0 && kLine % element == 0 ? kLine : element;
  const std::uint64_t fair = ((all.bytes + members - 1) / members + grain - 1) / grain * grain;
  const Extent own = piece_of(all.bytes, fair, member);
  return {all.offset + own.offset, own.bytes};
}

}  // namespace brant::coll
