#pragma once

#include <cstdint>
#include <cstring>

#include "ops/courier/desk.h"

namespace brant::courier {

/// A thread of the courier's kernel on a CPU, and how it copies. A group is one warp, and that one thread.
class HostMachine : public simt::CpuThread {
 public:
  static constexpr unsigned kLooksPerClock = 8;

  /// `fault` becomes 1 when an order names memory out of reach.
  HostMachine(Reach by, std::uint64_t* fault) noexcept : CpuThread(by), fault_(fault) {}

  void fence_counted() noexcept {}
  void fence_parts() noexcept {}

  [[nodiscard]] bool leads() const noexcept { return true; }
  void group_sync() noexcept {}

  template <typename T>
  [[nodiscard]] T* reach(T* pointer) noexcept {
    T* place = CpuThread::reach(pointer);
    if (place == nullptr) store_release(fault_, 1);
    return place;
  }
  [[nodiscard]] bool faulted() const noexcept { return load_acquire(fault_) != 0; }

  void copy_by_warp(std::uint64_t to, std::uint64_t from, std::uint32_t bytes) noexcept {
    if (bytes == 0) return;
    std::byte* target = reach(reinterpret_cast<std::byte*>(to));
    const std::byte* source = reach(reinterpret_cast<const std::byte*>(from));
    if (target != nullptr && source != nullptr) std::memmove(target, source, bytes);
  }
  void copy_by_group(const PartRing::Entry* parts, unsigned count) noexcept {
    for (unsigned i = 0; i < count; ++i) {
      copy_by_warp(parts[i].words[OrderWords::to], parts[i].words[OrderWords::from], bytes_of(parts[i]));
    }
  }

 private:
  std::uint64_t* const fault_;
};

}  // namespace brant::courier
