#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

#include "ops/courier/desk.h"
#include "ops/courier/one_thread_warp.h"

namespace brant::courier {

/// How the courier's code does things on a CPU: a warp is one thread. Stores release and loads acquire, which is all
/// that the fences are for; the thread sanitizer does not know fences, and watches this instead. (That the fences stand
/// where they must is the model checker's part.)
class ThreadMachine : public OneThreadWarp {
 public:
  static constexpr unsigned kLooksPerClock = 8;
  /// Null for what the device does not reach.
  using Reach = void* (*)(void* device_pointer) noexcept;

  /// `fault` becomes 1 when an order names memory out of reach.
  ThreadMachine(Reach reach, std::uint64_t* fault) noexcept : reach_(reach), fault_(fault) {}

  void store(std::uint64_t* to, std::uint64_t value) noexcept {
    std::atomic_ref(*to).store(value, std::memory_order_release);
  }
  std::uint64_t load(const std::uint64_t* from) const noexcept {
    return std::atomic_ref(*const_cast<std::uint64_t*>(from)).load(std::memory_order_acquire);
  }
  Pair load_pair(const std::uint64_t* from) const noexcept { return {load(from), load(from + 1)}; }
  Pair load_pair_of_device(const std::uint64_t* from) const noexcept { return load_pair(from); }
  Pair load_pair_here(const std::uint64_t* from) const noexcept { return load_pair(from); }
  std::uint64_t load_here(const std::uint64_t* from) const noexcept { return load(from); }
  std::uint64_t load_near(const std::uint64_t* from) const noexcept { return load(from); }
  void store_near(std::uint64_t* to, std::uint64_t value) noexcept { store(to, value); }
  bool claim(std::uint64_t* word, std::uint64_t from, std::uint64_t to) noexcept {
    return std::atomic_ref(*word).compare_exchange_strong(from, to, std::memory_order_acq_rel);
  }
  void lock(std::uint64_t* word) noexcept {
    std::uint64_t free = 0;
    while (!std::atomic_ref(*word).compare_exchange_weak(free, 1, std::memory_order_acquire)) {
      free = 0;
      std::this_thread::yield();
    }
  }
  void unlock(std::uint64_t* word) noexcept { store(word, 0); }
  std::uint64_t add(std::uint64_t* to, std::uint64_t value) noexcept {
    return std::atomic_ref(*to).fetch_add(value, std::memory_order_acq_rel);
  }
  void fence_system() noexcept {}
  void fence_counted() noexcept {}
  void fence_parts() noexcept {}

  [[nodiscard]] std::uint64_t now_ns() const noexcept {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
  }
  void pause() noexcept { std::this_thread::yield(); }

  [[nodiscard]] std::uint64_t* word_at(std::uint64_t address) noexcept {
    return static_cast<std::uint64_t*>(reached(address));
  }
  [[nodiscard]] bool faulted() const noexcept { return load(fault_) != 0; }

  void copy_by_warp(std::uint64_t to, std::uint64_t from, std::uint32_t bytes) noexcept {
    if (bytes == 0) return;
    void* target = reached(to);
    const void* source = reached(from);
    if (target != nullptr && source != nullptr) std::memmove(target, source, bytes);
  }
  void copy_by_group(const PartRing::Entry* parts, unsigned count) noexcept {
    for (unsigned i = 0; i < count; ++i) {
      copy_by_warp(parts[i].words[OrderWords::to], parts[i].words[OrderWords::from], bytes_of(parts[i]));
    }
  }

 private:
  void* reached(std::uint64_t address) noexcept {
    void* place = reach_(reinterpret_cast<void*>(address));
    if (place == nullptr) store(fault_, 1);
    return place;
  }

  const Reach reach_;
  std::uint64_t* const fault_;
};

}  // namespace brant::courier
