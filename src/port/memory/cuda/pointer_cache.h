#pragma once

#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <unordered_map>

#include "brant/base/result.h"
#include "port/memory.h"

namespace brant::port::memory {

/// What the driver said about foreign allocations, by its buffer id. The id is asked again at every lookup (one cheap
/// driver call) and is never used twice, so that freed and re-allocated addresses cannot be mistaken for what they
/// were; the other five answers come from here. Bounded: a full cache is emptied. Any thread.
class PointerCache {
 public:
  explicit PointerCache(std::size_t entries_max = 4096) noexcept : entries_max_(entries_max) {}

  /// not_found if the id is unknown or `pointer` lies outside what was remembered for it.
  [[nodiscard]] Result<PointerInfo> find(std::uint64_t buffer_id, const void* pointer) const noexcept;
  /// Remembers `info` under its buffer id; ids of 0 and empty ranges are not remembered.
  void insert(const PointerInfo& info) noexcept;
  [[nodiscard]] std::size_t size() const noexcept;

 private:
  const std::size_t entries_max_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::uint64_t, PointerInfo> by_id_;  ///< Protected by mutex_.
};

}  // namespace brant::port::memory
