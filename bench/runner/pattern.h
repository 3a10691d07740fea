#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace brant::bench {

/// Bytes that differ from message to message and from place to place, so that a message that is lost, doubled, shifted,
/// cut or mixed with another is noticed.
void fill_pattern(std::span<std::byte> bytes, std::uint64_t message) noexcept;

/// What a landing is filled with before the message arrives: the complement, so that no byte is right by chance.
void fill_poison(std::span<std::byte> bytes, std::uint64_t message) noexcept;

/// The first byte that is not the pattern's.
std::optional<std::size_t> first_wrong_byte(std::span<const std::byte> bytes, std::uint64_t message) noexcept;

/// The pattern's byte at `index`, for error texts.
std::byte pattern_byte(std::uint64_t message, std::size_t index) noexcept;

}  // namespace brant::bench
