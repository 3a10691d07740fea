#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// Looks through lines of 16 words of 8 bytes, as fast as the CPU can.
namespace brant::line_scan {

inline constexpr std::size_t kWords = 16;  ///< Of a line: 128 bytes, aligned to that.

/// Of up to 64 lines, those whose bits are set in `of`: the ones with a word that has reached what is wanted of it.
/// Words are compared cyclically. They may be written meanwhile, each of them whole; what is found is to be looked at
/// again, with the order of an acquire.
using LoudLines = std::uint64_t (*)(const std::uint64_t* words, const std::uint64_t* wanted, std::uint64_t of);

struct Way {
  const char* name;
  LoudLines look;
};

/// Those that this CPU has, from the slowest to the fastest; of a build for the thread sanitizer the first alone, which
/// is one that it understands.
std::span<const Way> ways() noexcept;

}  // namespace brant::line_scan
