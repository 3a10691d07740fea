#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "brant/base/result.h"

namespace brant::port::memory {

/// The addresses of emulated device memory: two reserved ranges of equal size that no other code of the process can be
/// given. An offset means the same byte in both. The *device* range is what users hold and is never accessible, so a
/// CPU access traps and a system call fails with EFAULT; the *engine* range is where streams and kernels read and
/// write. Addresses that were freed stay inside the ranges: naming them later is noticed instead of hitting somebody
/// else's memory. (A debugger shows device memory at `pointer + engine_distance()`.)
///
/// Freed addresses are given out again at once, lowest first, as GPU drivers do: caches that trust an address fail in
/// tests. Any thread.
class AddressWindow {
 public:
  /// Reserves address space only, no memory. 256 GiB; less under a limit on address space (ulimit -v), then possibly
  /// none.
  AddressWindow() noexcept;
  AddressWindow(const AddressWindow&) = delete;
  AddressWindow& operator=(const AddressWindow&) = delete;
  ~AddressWindow();

  /// The offset of `bytes` unused bytes, a multiple of the page size, with an inaccessible page behind them. no_memory.
  Result<std::size_t> take(std::size_t bytes) noexcept;
  /// The range must have come from `take` with the same size; nothing may be mapped in it.
  void give_back(std::size_t offset, std::size_t bytes) noexcept;

  [[nodiscard]] bool contains(const void* device_pointer) const noexcept {
    return reinterpret_cast<std::uintptr_t>(device_pointer) - reinterpret_cast<std::uintptr_t>(device_) < bytes_;
  }
  [[nodiscard]] std::byte* device_address(std::size_t offset) const noexcept { return device_ + offset; }
  [[nodiscard]] std::byte* engine_address(std::size_t offset) const noexcept { return engine_ + offset; }
  [[nodiscard]] std::ptrdiff_t engine_distance() const noexcept { return engine_ - device_; }

 private:
  std::byte* device_ = nullptr;  ///< Constant after construction, like the next two.
  std::byte* engine_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t page_ = 4096;
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_;  ///< Offset to size, never two adjacent. Protected by mutex_.
};

}  // namespace brant::port::memory
