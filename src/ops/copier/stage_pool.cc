#include "ops/copier/stage_pool.h"

#include <algorithm>
#include <bit>

#include "base/log.h"

namespace brant {

StagePool::~StagePool() {
  for (auto& buffers : kept_) {
    for (void* buffer : buffers) {
      if (device_.free(buffer) != Status::ok) log::debug("a stage buffer could not be freed at the end");
    }
  }
}

Result<StagePool::Lease> StagePool::take(std::size_t bytes) noexcept {
  const std::size_t capacity = std::bit_ceil(std::max(bytes, kSmallest));
  auto& buffers = kept_[static_cast<std::size_t>(std::countr_zero(capacity))];
  if (!buffers.empty()) {
    void* data = buffers.back();
    buffers.pop_back();
    kept_bytes_ -= capacity;
    return Lease{data, capacity};
  }
  const Result<void*> data = device_.allocate(MemoryKind::pinned, capacity);
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
  if (kept_bytes_ + lease.bytes <= kKeptBytesMax) {
    try {
      kept_[static_cast<std::size_t>(std::countr_zero(lease.bytes))].push_back(lease.data);
      kept_bytes_ += lease.bytes;
      return;
    } catch (...) {
      log::debug("no memory to keep a stage buffer");
    }
  }
  if (device_.free(lease.data) != Status::ok) log::warn("a stage buffer of {} bytes could not be freed", lease.bytes);
}

}  // namespace brant
