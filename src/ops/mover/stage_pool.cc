#include "ops/mover/stage_pool.h"

#include <algorithm>
#include <bit>

#include "base/log.h"

namespace brant {

StagePool::~StagePool() {
  engine_.deferrals().take_back(*this);
  const auto free = [this](void* memory) {
    if (device_.free(memory) != Status::ok) log::debug("a stage buffer could not be freed at the end");
  };
  for (std::size_t power = kSlabPower; power < sizes_.size(); ++power) {
    for (void* buffer : sizes_[power]) free(buffer);
  }
  for (void* slab : slabs_) free(slab);
}

Result<StagePool::Lease> StagePool::take(std::size_t bytes) noexcept {
  const std::size_t capacity = std::bit_ceil(std::max(bytes, kSmallest));
  Spares<void*>& size = sizes_[static_cast<std::size_t>(std::countr_zero(capacity))];
  if (!size.empty()) {
    if (capacity >= kSlabBytes) kept_bytes_ -= capacity;
    return Lease{size.take(), capacity};
  }
  const Result<void*> data =
      capacity < kSlabBytes ? carve(size, capacity) : size.make([&] { return allocate(capacity); });
  if (!data) {
    log::error(
        "no pinned host buffer of {} bytes for the staged path: {}. Use fewer or smaller messages, or another path",
        capacity, status_text(data.status()));
    return data.status();
  }
  return Lease{*data, capacity};
}

Result<void*> StagePool::allocate(std::size_t capacity) noexcept {
  return device_.allocate(MemoryKind::pinned, capacity);
}

Result<void*> StagePool::carve(Spares<void*>& size, std::size_t capacity) noexcept {
  try {
    slabs_.reserve(slabs_.size() + 1);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  std::size_t count = std::clamp<std::size_t>(size.made(), 1, kSlabBytes / capacity);
  const Result<void*> first = size.make([&] {
    Result<void*> slab = allocate(count * capacity);
    if (!slab && count > 1) slab = allocate((count = 1) * capacity);
    return slab;
  });
  if (!first) return first;
  slabs_.push_back(*first);
  auto* const base = static_cast<std::byte*>(*first);
  for (std::size_t i = 1; i < count; ++i) {
    const Result<void*> further = size.make([&]() -> Result<void*> { return base + i * capacity; });
    if (!further) break;
    size.give_back(*further);
  }
  return first;
}

void StagePool::give_back(Lease lease) noexcept {
  if (lease.data == nullptr) return;
  sizes_[static_cast<std::size_t>(std::countr_zero(lease.bytes))].give_back(lease.data);
  if (lease.bytes < kSlabBytes) return;
  kept_bytes_ += lease.bytes;
  if (kept_bytes_ > kKeptBytesMax) engine_.deferrals().defer(*this);
}

/// The largest first.
void StagePool::run_deferred() noexcept {
  for (std::size_t power = sizes_.size(); power-- > kSlabPower;) {
    Spares<void*>& size = sizes_[power];
    while (kept_bytes_ > kKeptBytesMax && !size.empty()) {
      kept_bytes_ -= std::size_t{1} << power;
      if (device_.free(size.drop()) != Status::ok) log::warn("a stage buffer of 2^{} bytes could not be freed", power);
    }
  }
}

}  // namespace brant
