#pragma once

#include <cstddef>

#include "brant/base/intrusive_list.h"

namespace brant::port::loopback {

/// Lends items; grows by blocks, up to a bound of items lent at once, and never shrinks.
template <typename T, ListHook<T> T::* kHook, std::size_t kPerBlock>
class Pool {
 public:
  explicit Pool(std::size_t items_max) noexcept : items_max_(items_max) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    while (blocks_ != nullptr) {
      Block* block = blocks_;
      blocks_ = block->next;
      delete block;
    }
  }

  /// Null when the bound or the memory is reached.
  T* take() noexcept {
    if (lent_ >= items_max_ || (free_.empty() && !grow())) return nullptr;
    ++lent_;
    return free_.pop_front();
  }
  void give(T& item) noexcept {
    --lent_;
    free_.push_back(item);
  }

 private:
  struct Block {
    T items[kPerBlock];
    Block* next = nullptr;
  };

  bool grow() noexcept;

  IntrusiveList<T, kHook> free_;
  Block* blocks_ = nullptr;
  std::size_t items_max_;
  std::size_t lent_ = 0;
};

}  // namespace brant::port::loopback

#include "port/wire/loopback/pool.inl.h"
