#include "ops/mover/stage_pool.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/log.h"

namespace brant {

StagePool::~StagePool() {
  engine_.deferrals().take_back(*this);
  for (const Size& size : sizes_) {
    for (void* buffer : size.kept) {
      if (device_.free(buffer) != Status::ok) log::debug("a stage buffer could not be freed at the end");
    }
  }
}

Result<StagePool::Lease> StagePool::take(std::size_t bytes) noexcept {
  const std::size_t capacity = std::bit_ceil(std::max(bytes, kSmallest));
  Size& size = sizes_[static_cast<std::size_t>(std::countr_zero(capacity))];
  if (!size.kept.empty()) {
    void* data = size.kept.back();
    size.kept.pop_back();
    kept_bytes_ -= capacity;
    return Lease{data, capacity};
  }
  const Result<void*> data = make(size, capacity);
  if (!data) {
    log::error(
        "no pinned host buffer of {} bytes for the staged path: {}. Use fewer or smaller messages, or another path",
        capacity, status_text(data.status()));
    return data.status();
  }
  return Lease{*data, capacity};
}

Result<void*> StagePool::make(Size& size, std::size_t capacity) noexcept {
  try {
    if (size.made == size.kept.capacity()) size.kept.reserve(2 * size.made + 1);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  const Result<void*> data = device_.allocate(MemoryKind::pinned, capacity);
  if (data) ++size.made;
  return data;
}

void StagePool::give_back(Lease lease) noexcept {
  if (lease.data == nullptr) return;
  sizes_[static_cast<std::size_t>(std::countr_zero(lease.bytes))].kept.push_back(lease.data);
  kept_bytes_ += lease.bytes;
  if (kept_bytes_ > kKeptBytesMax) engine_.deferrals().defer(*this);
}

/// The largest first.
void StagePool::run_deferred() noexcept {
  for (std::size_t power = sizes_.size(); power-- > 0;) {
    Size& size = sizes_[power];
    for (; kept_bytes_ > kKeptBytesMax && !size.kept.empty(); size.kept.pop_back(), --size.made) {
      kept_bytes_ -= std::size_t{1} << power;
      if (device_.free(size.kept.back()) != Status::ok)
        log::warn("a stage buffer of 2^{} bytes could not be freed", power);
    }
  }
}

}  // namespace brant
