#pragma once

#include <cstddef>
#include <cstdint>

#include "brant/mpi/mpi.h"

namespace brant::mpi {

/// Tags go from 0 to this one.
inline constexpr int kTagMax = 0x7fff'ffff;

/// What messages are matched by: the context of a communicator, the rank of the sender in it, and the tag. A receive
/// may have wildcards for the last two.
struct MatchKey {
  std::uint32_t context = 0;
  std::int32_t source = MPI_ANY_SOURCE;
  std::int32_t tag = MPI_ANY_TAG;

  friend bool operator==(const MatchKey&, const MatchKey&) noexcept = default;

  [[nodiscard]] MatchKey any_source() const noexcept { return {context, MPI_ANY_SOURCE, tag}; }
  [[nodiscard]] MatchKey any_tag() const noexcept { return {context, source, MPI_ANY_TAG}; }
  [[nodiscard]] MatchKey any() const noexcept { return {context, MPI_ANY_SOURCE, MPI_ANY_TAG}; }

  [[nodiscard]] std::size_t hash() const noexcept {
    std::uint64_t word = (std::uint64_t{context} << 32) ^ static_cast<std::uint32_t>(tag);
    word = (word ^ (word >> 29)) * 0xbf58476d1ce4e5b9u;
    word ^= static_cast<std::uint32_t>(source) * 0x9e3779b97f4a7c15u;
    word = (word ^ (word >> 32)) * 0x94d049bb133111ebu;
    return static_cast<std::size_t>(word ^ (word >> 31));
  }
};

}  // namespace brant::mpi
