#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace brant {

/// Tickets of segments that others have published to this process while it had no space. The next space gets them.
class EarlyTickets {
 public:
  static constexpr std::size_t kMost = 65536;

  /// False: there is no room for it.
  bool keep(std::int32_t owner, std::uint32_t segment, std::span<const std::byte> ticket) noexcept {
    if (tickets_.size() >= kMost) return false;
    try {
      tickets_[{owner, segment}].assign(ticket.begin(), ticket.end());
      return true;
    } catch (const std::bad_alloc&) {
      drop(owner, segment);
      return false;
    }
  }
  void drop(std::int32_t owner, std::uint32_t segment) noexcept { tickets_.erase({owner, segment}); }
  /// Those of owners of which `gone` holds.
  template <typename Gone>
  void drop_those_of(const Gone& gone) noexcept {
    std::erase_if(tickets_, [&](const auto& each) { return gone(each.first.first); });
  }
  /// Gives each to `take(owner, segment, ticket)`, and keeps none.
  template <typename Take>
  void hand_over(const Take& take) noexcept {
    for (const auto& [place, ticket] : std::exchange(tickets_, {}))
      take(place.first, place.second, std::span<const std::byte>(ticket));
  }

 private:
  std::map<std::pair<std::int32_t, std::uint32_t>, std::vector<std::byte>> tickets_;
};

}  // namespace brant
