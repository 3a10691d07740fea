#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace brant::place {

/// Names one thing that others send to (a chare, the end of a channel, later a virtual MPI rank) for as long as it
/// lives, wherever it lives. The model above makes it: its own pure function says the home, its own numbers the rest.
class Identity {
 public:
  static constexpr unsigned kNumberBits = 40;
  static constexpr std::int32_t kRanksMax = 1 << 24;

  constexpr Identity() noexcept = default;
  /// `home` is below kRanksMax; of `number`, the home's or the model's own, the lower 40 bits count.
  static constexpr Identity of(std::int32_t home, std::uint64_t number) noexcept {
    Identity id;
    id.value_ = static_cast<std::uint64_t>(home) << kNumberBits | (number & kNumbers);
    return id;
  }
  /// The rank where it lives if it never moved, and which knows where it lives if it did.
  [[nodiscard]] constexpr std::int32_t home() const noexcept {
    return static_cast<std::int32_t>(value_ >> kNumberBits);
  }
  [[nodiscard]] constexpr std::uint64_t number() const noexcept { return value_ & kNumbers; }
  constexpr auto operator<=>(const Identity&) const noexcept = default;

  struct Hash {
    std::size_t operator()(Identity id) const noexcept {
      const std::uint64_t mixed = id.value_ * 0x9e3779b97f4a7c15u;
      return static_cast<std::size_t>(mixed ^ mixed >> 32);
    }
  };

 private:
  static constexpr std::uint64_t kNumbers = (std::uint64_t{1} << kNumberBits) - 1;

  std::uint64_t value_ = 0;
};

/// Where a thing lives, or lived. Of two places of one thing the one with the larger epoch is the newer.
struct Place {
  std::int32_t rank = -1;
  std::uint32_t epoch = 0;  ///< One more with every move. 0: at home, and it never moved as far as anybody remembers.

  [[nodiscard]] constexpr bool newer_than(const Place& other) const noexcept { return epoch > other.epoch; }
  constexpr bool operator==(const Place&) const noexcept = default;
};

}  // namespace brant::place
