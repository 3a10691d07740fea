#pragma once

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "brant/base/api.h"

namespace brant {

/// A place in an array of N dimensions, or the extent of one. `blocks[{x, y, z}]`, `ring[3]`.
template <int N>
struct Index {
  static_assert(N >= 1 && N <= 6, "brant: chare arrays have 1 to 6 dimensions");
  std::array<std::int32_t, N> at{};

  constexpr Index() noexcept = default;
  template <std::integral... Coordinates>
    requires(sizeof...(Coordinates) == N)
  constexpr Index(Coordinates... coordinates) noexcept : at{static_cast<std::int32_t>(coordinates)...} {}  // NOLINT

  constexpr std::int32_t operator[](int dimension) const noexcept { return at[static_cast<std::size_t>(dimension)]; }
  constexpr std::int32_t& operator[](int dimension) noexcept { return at[static_cast<std::size_t>(dimension)]; }
  constexpr auto operator<=>(const Index&) const noexcept = default;
};

/// The index of a chare that stands alone: a number nobody else has, nor had. From the 16,777,217th on that one rank
/// makes it is longer, and costs 16 bytes in each message.
struct Single {
  std::uint64_t id = 0;
  std::uint64_t more = 0;
  constexpr auto operator<=>(const Single&) const noexcept = default;
};

/// What may name an element: `Index<N>`, a number, an enumeration, or a struct of these, of at most 24 bytes and
/// without padding (its bytes are its identity: they are hashed and compared).
template <typename I>
concept ElementIndex = std::is_trivially_copyable_v<I> && std::has_unique_object_representations_v<I> &&
                       std::default_initializable<I> && sizeof(I) <= 24;

namespace detail {

template <typename I>
inline constexpr int kDimensions = 0;
template <int N>
inline constexpr int kDimensions<Index<N>> = N;

/// The bytes of an index.
struct ElementKey {
  std::array<std::uint64_t, 3> word{};

  template <ElementIndex I>
  static ElementKey of(const I& index) noexcept {
    ElementKey key;
    std::memcpy(key.word.data(), &index, sizeof(I));
    return key;
  }
  template <ElementIndex I>
  [[nodiscard]] I as() const noexcept {
    I index;
    std::memcpy(static_cast<void*>(&index), word.data(), sizeof(I));
    return index;
  }
  /// Of `Index<N>`, without knowing N.
  [[nodiscard]] std::int32_t coordinate(int dimension) const noexcept {
    std::int32_t value;
    std::memcpy(&value, reinterpret_cast<const std::byte*>(word.data()) + dimension * 4, sizeof(value));
    return value;
  }
  void set_coordinate(int dimension, std::int32_t value) noexcept {
    std::memcpy(reinterpret_cast<std::byte*>(word.data()) + dimension * 4, &value, sizeof(value));
  }
  [[nodiscard]] bool wide() const noexcept { return (word[1] | word[2]) != 0; }
  [[nodiscard]] std::uint64_t hash() const noexcept {
    std::uint64_t mixed = word[0] * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 32) ^ word[1]) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 29) ^ word[2]) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 32);
  }
  bool operator==(const ElementKey&) const noexcept = default;
};

/// For error texts: "[1,2,3]" for `Index<N>`, "[7]" for numbers, the bytes in hexadecimal for user types.
BRANT_API std::string index_text(const ElementKey& key, int dimensions, std::size_t bytes);

}  // namespace detail
}  // namespace brant
