#include "port/memory/cuda/pointer_cache.h"

#include <mutex>
#include <new>

namespace brant::port::memory {

Result<PointerInfo> PointerCache::find(std::uint64_t buffer_id, const void* pointer) const noexcept {
  const std::shared_lock lock(mutex_);
  const auto found = by_id_.find(buffer_id);
  if (found == by_id_.end()) return Status::not_found;
  const PointerInfo& info = found->second;
  const auto offset = reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(info.base);
  if (offset >= info.bytes) return Status::not_found;
  return info;
}

void PointerCache::insert(const PointerInfo& info) noexcept {
  if (info.buffer_id == 0 || info.bytes == 0) return;
  try {
    const std::unique_lock lock(mutex_);
    if (by_id_.size() >= entries_max_) by_id_.clear();
    by_id_.insert_or_assign(info.buffer_id, info);
  } catch (const std::bad_alloc&) {
    return;  // asked again next time
  }
}

std::size_t PointerCache::size() const noexcept {
  const std::shared_lock lock(mutex_);
  return by_id_.size();
}

}  // namespace brant::port::memory
