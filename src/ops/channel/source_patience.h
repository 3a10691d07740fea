#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <new>
#include <unordered_map>

namespace brant {

/// How long closing a channel waits for a peer that may still read a source: `kWhole` for all channels to that peer
/// together, so that a program with many of them ends in time. The peer gets the whole again once it let a source go,
/// or shows otherwise that it moves.
class SourcePatience {
 public:
  static constexpr std::chrono::nanoseconds kWhole = std::chrono::seconds(5);

  [[nodiscard]] std::chrono::nanoseconds left(std::int32_t rank) const noexcept {
    const auto found = spent_.find(rank);
    return found == spent_.end() ? kWhole : kWhole - found->second;
  }
  void waited(std::int32_t rank, std::chrono::nanoseconds time, bool came_free) noexcept {
    if (came_free) {
      heard_from(rank);
      return;
    }
    try {
      auto& spent = spent_[rank];
      spent = std::min(kWhole, spent + time);
    } catch (const std::bad_alloc&) {  // the next one waits as long again
    }
  }
  /// From a peer that had no patience left this shows that it moves again.
  void heard_from(std::int32_t rank) noexcept { spent_.erase(rank); }

 private:
  std::unordered_map<std::int32_t, std::chrono::nanoseconds> spent_;  ///< Of peers that did not move at the last wait.
};

}  // namespace brant
