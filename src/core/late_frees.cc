#include "core/late_frees.h"

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"

namespace brant {
namespace {

/// Of all memory of the device: where so much is kept, the log says so.
constexpr std::size_t kMuch = 4;

}  // namespace

LateFrees::~LateFrees() {
  deferrals_.take_back(*this);
  if (!kernels_stay()) {
    free_kept();
  } else if (kept_bytes() != 0) {
    log::warn("{} bytes are not freed: a kernel, or a stream that waits, could not be ended and may use them",
              kept_bytes());
  }
}

Result<void*> LateFrees::allocate(MemoryKind kind, std::size_t bytes) noexcept {
  // Without the lock where nothing can be taken: another thread may free meanwhile, and wait for the device.
  // Behind the wait of a stream there may be work that was to end before the memory is free.
  if (kept_bytes() != 0 && !left_.load(std::memory_order_relaxed) && !deferrals_.streams_wait()) {
    const std::lock_guard lock(mutex_);
    const auto fits =
        std::ranges::find_if(kept_, [&](const Buffer& kept) { return kept.kind == kind && kept.bytes == bytes; });
    if (fits != kept_.end()) {
      void* const again = fits->data;
      kept_.erase(fits);
      kept_bytes_ -= bytes;
      return again;
    }
  }
  return device_.allocate(kind, bytes);
}

Status LateFrees::free(const Buffer& memory) noexcept {
  if (memory.kind == MemoryKind::host) return device_.free(memory.data);
  // Under the lock, so that no kernel is launched meanwhile.
  const std::lock_guard lock(mutex_);
  if (kernels_stay()) return keep(memory);
  free_kept();
  return device_.free(memory.data);
}

void LateFrees::tidy() noexcept {
  const std::lock_guard lock(mutex_);
  if (!kernels_stay()) free_kept();
}

Status LateFrees::keep(const Buffer& memory) noexcept {
  try {
    kept_.push_back(memory);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  kept_bytes_ += memory.bytes;
  if (kept_bytes() > device_.capabilities().memory_bytes / kMuch && !std::exchange(told_, true)) {
    log::warn(
        "{} bytes were given back and cannot be freed while a kernel stays on the device: end it (destroy the "
        "HaloExchange or the PersistentKernel) before memory is allocated anew, or use the memory again",
        kept_bytes());
  }
  return Status::ok;
}

void LateFrees::note_kernel() noexcept {
  const std::lock_guard lock(mutex_);
  device_.staying_kernels().note(+1);
}

/// A thread that frees meanwhile may keep the memory, or has: then there may be something to do.
void LateFrees::note_end() noexcept {
  device_.staying_kernels().note(-1);
  if (device_.staying_kernels().any()) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !kept_.empty()) deferrals_.defer(*this);
}

std::string LateFrees::describe() const {
  const std::size_t bytes = kept_bytes();
  if (bytes == 0) return {};
  if (left_.load(std::memory_order_relaxed)) {
    return fmt::format("; {} bytes were given back, and a kernel that could not be ended may use them", bytes);
  }
  return kernels_stay() ? fmt::format(
                              "; {} bytes were given back, and are freed when the kernels that stay on the "
                              "device have ended, and streams no longer wait",
                              bytes)
                        : fmt::format("; {} bytes were given back: Runtime::tidy frees them", bytes);
}

void LateFrees::run_deferred() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return deferrals_.defer(*this);  // behind a thread that frees, and waits for the device
  if (!kernels_stay()) free_kept();
}

void LateFrees::free_kept() noexcept {
  for (const Buffer& memory : kept_) {
    if (const Status status = device_.free(memory.data); status != Status::ok) {
      log::warn("{} bytes of {} memory could not be freed: {}", memory.bytes, memory_kind_name(memory.kind),
                status_text(status));
    }
  }
  kept_.clear();
  kept_bytes_ = 0;
}

}  // namespace brant
