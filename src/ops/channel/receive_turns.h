#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace brant {

/// Which message the next receive gets: the first that no receive has, or has any more. A receive that was taken back
/// leaves its turn to the next one.
class ReceiveTurns {
 public:
  /// Nothing was returned: the turns follow each other.
  [[nodiscard]] bool in_order() const noexcept { return returned_.empty(); }
  /// Above all numbers that receives had.
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  [[nodiscard]] std::uint64_t first_free() const noexcept {
    return returned_.empty() ? next_ : std::min(next_, *std::ranges::min_element(returned_));
  }
  [[nodiscard]] bool is_taken(std::uint64_t number) const noexcept {
    return number < next_ && std::find(returned_.begin(), returned_.end(), number) == returned_.end();
  }
  std::uint64_t take() noexcept {
    if (returned_.empty()) return next_++;
    const auto first = std::ranges::min_element(returned_);
    const std::uint64_t number = *first;
    returned_.erase(first);
    return number;
  }
  void give_back(std::uint64_t number) noexcept { returned_.push_back(number); }
  /// Nobody will receive it.
  void strike(std::uint64_t number) noexcept { std::erase(returned_, number); }
  /// Messages before this one are for nobody any more.
  void skip_to(std::uint64_t number) noexcept { next_ = std::max(next_, number); }

 private:
  std::uint64_t next_ = 0;
  std::vector<std::uint64_t> returned_;
};

}  // namespace brant
