#include "ops/mover/stage_pool.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/log.h"

namespace brant {

StagePool::~StagePool() {
  engine_.deferrals().take_back(*this);
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
  try {
    kept_[static_cast<std::size_t>(std::countr_zero(lease.bytes))].push_back(lease.data);
    kept_bytes_ += lease.bytes;
  } catch (const std::bad_alloc&) {
    log::debug("no memory to keep a stage buffer of {} bytes: the device frees it at the end", lease.bytes);
  }
  if (kept_bytes_ > kKeptBytesMax) engine_.deferrals().defer(*this);
}

/// The largest first.
void StagePool::run_deferred() noexcept {
  for (std::size_t size = kept_.size(); size-- > 0;) {
    std::vector<void*>& buffers = kept_[size];
    for (; kept_bytes_ > kKeptBytesMax && !buffers.empty(); buffers.pop_back()) {
      kept_bytes_ -= std::size_t{1} << size;
      if (device_.free(buffers.back()) != Status::ok)
        log::warn("a stage buffer of 2^{} bytes could not be freed", size);
    }
  }
}

}  // namespace brant
