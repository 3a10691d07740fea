#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "brant/base/buffer.h"
#include "core/deferrals.h"
#include "port/memory.h"

namespace brant {

/// Frees what the program allocated. The driver frees memory of a device once all its kernels have ended: while one
/// stays there (PersistentKernel) or waits for another process, what is given back is kept, handed out again to whoever
/// wants as much, and freed when the last such kernel has ended, by the deferrals. Where a kernel never ends, it is not
/// handed out again either: that kernel may still write it. What is given back while a stream waits (StreamWaits) is
/// kept, not handed out before that has passed, and freed with what is given back later, or by `tidy`. Any thread may
/// free and allocate; the rest is the worker's.
class LateFrees final : private DeferredWork {
 public:
  LateFrees(port::Device& device, Deferrals& deferrals) noexcept : device_(device), deferrals_(deferrals) {}
  /// Frees what is kept, unless a kernel was left on the device.
  ~LateFrees();
  LateFrees(const LateFrees&) = delete;
  LateFrees& operator=(const LateFrees&) = delete;

  /// Of the device, or one that is kept.
  Result<void*> allocate(MemoryKind kind, std::size_t bytes) noexcept;
  /// What `allocate` gave.
  Status free(const Buffer& memory) noexcept;

  /// One kernel more stays on the device from now on: before it is launched. Waits while another thread frees.
  void note_kernel() noexcept;
  /// The same of one that ends by itself when it has waited for others. Never waits: a free that is under way may end
  /// with that kernel.
  void note_launch() noexcept { device_.staying_kernels().note(+1); }
  /// It has ended. Never waits: also within progress.
  void note_end() noexcept;
  /// It will not end.
  void note_left() noexcept { left_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool kernels_stay() const noexcept {
    return device_.staying_kernels().any() || deferrals_.streams_wait();
  }
  /// Frees what is kept if it can. Waits for the device: not within progress.
  void tidy() noexcept;
  /// Given back, and not free yet.
  [[nodiscard]] std::size_t kept_bytes() const noexcept { return kept_bytes_.load(std::memory_order_relaxed); }
  /// "; 4096 bytes wait ..." for who gets no memory; empty where none are kept.
  [[nodiscard]] std::string describe() const;

 private:
  void run_deferred() noexcept override;
  Status keep(const Buffer& memory) noexcept;
  void free_kept() noexcept;

  port::Device& device_;
  Deferrals& deferrals_;
  std::mutex mutex_;
  std::vector<Buffer> kept_;                 ///< Protected by mutex_.
  std::atomic<std::size_t> kept_bytes_ = 0;  ///< Written under mutex_.
  std::atomic<bool> left_ = false;           ///< A kernel was left on the device.
  bool told_ = false;                        ///< That much is kept; protected by mutex_.
};

}  // namespace brant
