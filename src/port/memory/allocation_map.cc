#include "port/memory/allocation_map.h"

#include <array>
#include <atomic>
#include <iterator>
#include <mutex>
#include <new>
#include <utility>

namespace brant::port::memory {
namespace {

std::uintptr_t address(const void* pointer) noexcept { return reinterpret_cast<std::uintptr_t>(pointer); }

struct Remembered {
  std::uint64_t version = 0;  ///< Of the map then.
  bool unknown = false;       ///< `allocation` is a gap between two, of which nothing else is known.
  PointerInfo allocation;

  [[nodiscard]] bool covers(const void* pointer, std::uint64_t now) const noexcept {
    return version == now && address(pointer) - address(allocation.base) < allocation.bytes;
  }
};

/// What a thread has found, in all maps. What uses no more allocations than this holds, finds them here.
class Recent {
 public:
  /// Null: not known. Looks first at the one that was found last, then at those that were found after it at first,
  /// since programs use their buffers in the same order again and again.
  [[nodiscard]] const Remembered* recall(const void* pointer, std::uint64_t version) noexcept {
    for (std::size_t i = 0; i < kRemembered; ++i) {
      const std::size_t place = (last_ + i) % kRemembered;
      if (!entries_[place].covers(pointer, version)) continue;
      last_ = place;
      return &entries_[place];
    }
    return nullptr;
  }
  void remember(const Remembered& found) noexcept {
    last_ = next_++ % kRemembered;
    entries_[last_] = found;
  }
  [[nodiscard]] const Remembered& last() const noexcept { return entries_[last_]; }

 private:
  static constexpr std::size_t kRemembered = 16;

  std::array<Remembered, kRemembered> entries_;
  std::size_t last_ = 0;
  std::size_t next_ = 0;
};

Recent& recent() noexcept {
  thread_local Recent found;
  return found;
}

}  // namespace

std::uint64_t next_buffer_id() noexcept {
  static std::atomic<std::uint64_t> counter{1};
  return (std::uint64_t{1} << 63) | counter.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t AllocationMap::next_version() noexcept {
  static std::atomic<std::uint64_t> counter{0};
  return counter.fetch_add(1, std::memory_order_relaxed) + 1;
}

Status AllocationMap::insert(const PointerInfo& allocation) noexcept {
  const std::uintptr_t base = address(allocation.base);
  if (base == 0 || allocation.bytes == 0 || base + allocation.bytes < base) return Status::invalid_argument;
  try {
    const std::unique_lock lock(mutex_);
    const auto after = by_base_.lower_bound(base);
    if (after != by_base_.end() && after->first < base + allocation.bytes) return Status::invalid_argument;
    if (after != by_base_.begin()) {
      const auto& [before_base, before] = *std::prev(after);
      if (before_base + before.bytes > base) return Status::invalid_argument;
    }
    by_base_.emplace_hint(after, base, allocation);
    version_.store(next_version(), std::memory_order_release);
    return Status::ok;
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

Result<PointerInfo> AllocationMap::find(const void* pointer) const noexcept {
  const std::uint64_t version = version_.load(std::memory_order_acquire);
  if (const Remembered* known = recent().recall(pointer, version)) {
    if (known->unknown) return Status::not_found;
    return known->allocation;
  }
  const std::shared_lock lock(mutex_);
  const auto after = by_base_.upper_bound(address(pointer));
  std::uintptr_t gap_begin = 0;
  if (after != by_base_.begin()) {
    const auto& [base, allocation] = *std::prev(after);
    if (address(pointer) - base < allocation.bytes) {
      recent().remember({version, false, allocation});
      return allocation;
    }
    gap_begin = base + allocation.bytes;
  }
  const std::uintptr_t gap_end = after == by_base_.end() ? ~std::uintptr_t{0} : after->first;
  Remembered gap{version, true, {}};
  gap.allocation.base = reinterpret_cast<void*>(gap_begin);
  gap.allocation.bytes = gap_end - gap_begin;
  recent().remember(gap);
  return Status::not_found;
}

AllocationMap::Range AllocationMap::around(const void* pointer) const noexcept {
  const Result<PointerInfo> found = find(pointer);
  const Remembered& last = recent().last();  // `find` has left its answer there
  return {last.version, found.ok(), address(last.allocation.base), last.allocation.bytes};
}

Result<PointerInfo> AllocationMap::remove(const void* base) noexcept {
  const std::unique_lock lock(mutex_);
  const auto after = by_base_.upper_bound(address(base));
  if (after == by_base_.begin()) return Status::not_found;
  const auto found = std::prev(after);
  if (address(base) - found->first >= found->second.bytes) return Status::not_found;
  if (found->first != address(base)) return Status::invalid_argument;
  const PointerInfo allocation = found->second;
  by_base_.erase(found);
  version_.store(next_version(), std::memory_order_release);
  return allocation;
}

std::vector<PointerInfo> AllocationMap::all() const noexcept {
  std::vector<PointerInfo> found;
  try {
    const std::shared_lock lock(mutex_);
    found.reserve(by_base_.size());
    for (const auto& [base, allocation] : by_base_) found.push_back(allocation);
  } catch (const std::bad_alloc&) {
    found.clear();
  }
  return found;
}

std::vector<PointerInfo> AllocationMap::take_all() noexcept {
  std::vector<PointerInfo> found = all();
  const std::unique_lock lock(mutex_);
  by_base_.clear();
  version_.store(next_version(), std::memory_order_release);
  return found;
}

}  // namespace brant::port::memory
