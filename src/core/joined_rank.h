#pragma once

#include <cstdint>

/// How the processes that join a job after its start are numbered (docs/decisions/0044). Each process numbers those it
/// knows by itself, so the two ends of a connection have different numbers for each other (`Peer::rank_there`).
///
/// A number says in which slot the process is kept, how often that was used before, and who called whom: it is a
/// look-up away from its `Peer`, and does not come again before its slot has been used a quarter of a million times.
/// From below: slot (10 bits), generation (4), one set bit, generation (14), whether this process called, one set bit.
/// The set bit in the middle keeps them apart from the ranks of a job in the fifteen bits that the tags of channels
/// have.
namespace brant::joined_rank {

inline constexpr std::uint32_t kSlots = 1u << 10;  ///< So many may be joined at one time.
inline constexpr std::uint32_t kGenerations = 1u << 18;

inline constexpr std::uint32_t kJoined = 1u << 30;
inline constexpr std::uint32_t kCalled = 1u << 29;
inline constexpr std::uint32_t kApart = 1u << 14;

constexpr bool is_one(std::int32_t rank) noexcept { return rank >= static_cast<std::int32_t>(kJoined); }

constexpr std::int32_t make(std::uint32_t slot, std::uint32_t generation, bool called) noexcept {
  return static_cast<std::int32_t>(kJoined | (called ? kCalled : 0u) | (generation >> 4 & 0x3fffu) << 15 | kApart |
                                   (generation & 0xfu) << 10 | slot);
}

constexpr std::uint32_t slot_of(std::int32_t rank) noexcept { return static_cast<std::uint32_t>(rank) & (kSlots - 1); }

/// The side of channel ends of that process: whoever called has side 0.
constexpr unsigned side_of(std::int32_t rank) noexcept {
  return (static_cast<std::uint32_t>(rank) & kCalled) != 0 ? 1 : 0;
}

}  // namespace brant::joined_rank
