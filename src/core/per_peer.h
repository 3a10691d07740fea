#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/joined_rank.h"

namespace brant {

/// One T for each peer that has one: an index away for the ranks of the job, a look-up for those that have joined.
template <typename T>
class PerPeer {
 public:
  explicit PerPeer(std::size_t ranks) : of_job_(ranks) {}

  /// Such a peer can have one.
  [[nodiscard]] bool takes(std::int32_t rank) const noexcept { return is_of_job(rank) || joined_rank::is_one(rank); }
  /// Null: it has none.
  [[nodiscard]] T* find(std::int32_t rank) const noexcept {
    if (is_of_job(rank)) return of_job_[static_cast<std::size_t>(rank)].get();
    const auto known = joined_.find(rank);
    return known == joined_.end() ? nullptr : known->second.get();
  }
  /// Of a peer that `takes` says can have one. Throws bad_alloc.
  std::unique_ptr<T>& place(std::int32_t rank) {
    return is_of_job(rank) ? of_job_[static_cast<std::size_t>(rank)] : joined_[rank];
  }
  /// Of one that has joined.
  void forget(std::int32_t rank) noexcept { joined_.erase(rank); }

  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const auto& each : of_job_) {
      if (each != nullptr) visit(*each);
    }
    for (const auto& [rank, each] : joined_) visit(*each);
  }

 private:
  [[nodiscard]] bool is_of_job(std::int32_t rank) const noexcept {
    return rank >= 0 && static_cast<std::size_t>(rank) < of_job_.size();
  }

  std::vector<std::unique_ptr<T>> of_job_;
  std::unordered_map<std::int32_t, std::unique_ptr<T>> joined_;
};

}  // namespace brant
