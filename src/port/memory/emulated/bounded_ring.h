#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace brant::port::memory {

/// A first-in-first-out queue of at most `capacity` items in storage allocated once. One thread at a time.
template <typename T>
class BoundedRing {
 public:
  explicit BoundedRing(std::size_t capacity) : slots_(capacity) {}

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return slots_.size(); }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] bool full() const noexcept { return size_ == slots_.size(); }

  /// False if full; `item` is then untouched.
  bool push(T&& item) noexcept {
    if (full()) return false;
    slots_[(head_ + size_) % slots_.size()] = std::move(item);
    ++size_;
    return true;
  }
  /// Undefined if empty. The slot is reset, so that what the item held is released by whoever takes it.
  T pop() noexcept {
    T item = std::exchange(slots_[head_], T{});
    head_ = (head_ + 1) % slots_.size();
    --size_;
    return item;
  }

 private:
  std::vector<T> slots_;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace brant::port::memory
