#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <shared_mutex>
#include <vector>

#include "brant/base/result.h"
#include "port/memory.h"

namespace brant::port::memory {

/// A number that no other allocation of this process gets, whatever its kind. The top bit is set, so that it never
/// equals an id that a GPU driver counts up from one. Any thread.
std::uint64_t next_buffer_id() noexcept;

/// Which address belongs to which allocation: lookups of interior pointers, in O(log n), under a shared lock. What a
/// thread found last, and what it did not find, it answers again without a lock, as long as nothing was added or
/// removed: some nanoseconds.
/// Owns no memory. Any thread.
class AllocationMap {
 public:
  /// invalid_argument if the range is empty or overlaps one that is known; no_memory.
  Status insert(const PointerInfo& allocation) noexcept;

  /// The allocation that contains `pointer`; not_found.
  [[nodiscard]] Result<PointerInfo> find(const void* pointer) const noexcept;

  /// What lies around an address, until something is added or removed: an allocation, or a gap between two.
  struct Range {
    std::uint64_t version = 0;  ///< Of the map then.
    bool known = false;         ///< An allocation.
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;

    [[nodiscard]] bool covers(const void* data, std::size_t size) const noexcept {
      const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(data) - begin;
      return offset < bytes && size <= bytes - offset;
    }
  };
  [[nodiscard]] Range around(const void* pointer) const noexcept;
  /// A range of this version still holds.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }

  /// Forgets the allocation that starts at `base` and returns what it was. not_found; invalid_argument for a pointer
  /// into the middle of an allocation.
  Result<PointerInfo> remove(const void* base) noexcept;

  /// Everything known; empty if there is no memory for the list.
  [[nodiscard]] std::vector<PointerInfo> all() const noexcept;
  /// The same, and the map is empty afterwards. For destructors.
  std::vector<PointerInfo> take_all() noexcept;

 private:
  static std::uint64_t next_version() noexcept;

  mutable std::shared_mutex mutex_;
  std::atomic<std::uint64_t> version_{next_version()};  ///< Of the content; no other map has the same.
  std::map<std::uintptr_t, PointerInfo> by_base_;       ///< Protected by mutex_.
};

}  // namespace brant::port::memory
