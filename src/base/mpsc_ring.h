#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace brant {

/// A bounded queue that any thread may push to and one thread pops from. Neither side locks or allocates.
/// Each cell carries a turn number (Vyukov's bounded queue), so a slow producer delays only the cells behind its own.
template <typename T>
class MpscRing {
 public:
  /// `capacity` is rounded up to a power of two.
  explicit MpscRing(std::size_t capacity)
      : mask_(std::bit_ceil(capacity) - 1), cells_(std::make_unique<Cell[]>(mask_ + 1)) {
    for (std::size_t i = 0; i <= mask_; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
  }

  /// False when full: the caller waits or gives up.
  bool push(const T& item) noexcept {
    std::size_t position = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[position & mask_];
      const std::size_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == position) {
        if (!tail_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) continue;
        cell.item = item;
        cell.turn.store(position + 1, std::memory_order_release);
        return true;
      }
      if (turn < position) return false;
      position = tail_.load(std::memory_order_relaxed);
    }
  }

  /// Consumer only. False when empty.
  bool pop(T& item) noexcept {
    Cell& cell = cells_[head_ & mask_];
    if (cell.turn.load(std::memory_order_acquire) != head_ + 1) return false;
    item = cell.item;
    cell.turn.store(head_ + mask_ + 1, std::memory_order_release);
    ++head_;
    return true;
  }

 private:
  struct Cell {
    std::atomic<std::size_t> turn;
    T item;
  };

  std::size_t mask_;
  std::unique_ptr<Cell[]> cells_;
  alignas(64) std::atomic<std::size_t> tail_{0};
  alignas(64) std::size_t head_ = 0;
};

}  // namespace brant
