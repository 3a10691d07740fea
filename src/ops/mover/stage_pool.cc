#include "ops/mover/stage_pool.h"

#include <algorithm>
#include <bit>

#include "base/log.h"

namespace brant {

StagePool::~StagePool() {
  engine_.deferrals().take_back(*this);
  for (const Spares<void*>& size : sizes_) {
    for (void* buffer : size) {
      if (device_.free(buffer) != Status::ok) log::debug("a stage buffer could not be freed at the end");
    }
  }
}

Result<StagePool::Lease> StagePool::take(std::size_t bytes) noexcept {
  const std::size_t capacity = std::bit_ceil(std::max(bytes, kSmallest));
  Spares<void*>& size = sizes_[static_cast<std::size_t>(std::countr_zero(capacity))];
  if (!size.empty()) {
    kept_bytes_ -= capacity;
    return Lease{size.take(), capacity};
  }
  const Result<void*> data = size.make([&] { return device_.allocate(MemoryKind::pinned, capacity); });
  if (!data) {
    log::error(
        "no pinned host buffer of {} bytes for the staged path: {}. Use fewer or smaller messages, or another path",
        capacity, status_text(data.status()));
    return data.status();
  }
  return Lease{*data, capacity};
}

void StagePool::give_back(Lease lease) noexcept {
  if (lease.data == nullptr) return;
  sizes_[static_cast<std::size_t>(std::countr_zero(lease.bytes))].give_back(lease.data);
  kept_bytes_ += lease.bytes;
  if (kept_bytes_ > kKeptBytesMax) engine_.deferrals().defer(*this);
}

/// The largest first.
void StagePool::run_deferred() noexcept {
  for (std::size_t power = sizes_.size(); power-- > 0;) {
    Spares<void*>& size = sizes_[power];
    while (kept_bytes_ > kKeptBytesMax && !size.empty()) {
      kept_bytes_ -= std::size_t{1} << power;
      if (device_.free(size.drop()) != Status::ok) log::warn("a stage buffer of 2^{} bytes could not be freed", power);
    }
  }
}

}  // namespace brant
