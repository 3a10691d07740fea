#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "brant/base/status.h"

namespace brant {

/// Lends records of one type from blocks that are kept until the pool goes: no allocation in steady state, and a bound.
/// One thread only. Records must be given back before the pool is destroyed.
template <typename T, std::size_t BlockItems = 256>
class ObjectPool {
 public:
  explicit ObjectPool(std::size_t items_max) noexcept : items_max_(items_max) {}
  ObjectPool(const ObjectPool&) = delete;
  ObjectPool& operator=(const ObjectPool&) = delete;

  /// A fresh record, or null when `items_max` are lent or memory is exhausted.
  template <typename... Args>
  T* take(Args&&... args) noexcept {
    if (free_ == nullptr && !grow()) return nullptr;
    Slot* slot = free_;
    free_ = slot->next;
    slot->mark_lent(true);
    ++lent_;
    return ::new (static_cast<void*>(slot->storage)) T(std::forward<Args>(args)...);
  }

  /// Debug builds end the program where a record is given back that is not lent: the free list would become a circle.
  void give_back(T* item) noexcept {
    auto* slot = reinterpret_cast<Slot*>(item);
    assert(slot->is_lent() && "a record is given back once");
    item->~T();
    slot = ::new (static_cast<void*>(item)) Slot;
    slot->next = free_;
    free_ = slot;
    --lent_;
  }

  [[nodiscard]] std::size_t lent() const noexcept { return lent_; }
  /// Why `take` gave none: limit_reached, no_memory.
  [[nodiscard]] Status refusal() const noexcept { return is_full() ? Status::limit_reached : Status::no_memory; }

 private:
  struct Slot {
    union {
      Slot* next = nullptr;
      alignas(T) std::byte storage[sizeof(T)];
    };
#ifdef NDEBUG
    void mark_lent(bool) noexcept {}
#else
    bool lent = false;
    void mark_lent(bool is) noexcept { lent = is; }
    [[nodiscard]] bool is_lent() const noexcept { return lent; }
#endif
  };

  [[nodiscard]] bool is_full() const noexcept { return total_ + BlockItems > items_max_ && total_ != 0; }
  bool grow() noexcept {
    if (is_full()) return false;
    try {
      blocks_.push_back(std::make_unique<Slot[]>(BlockItems));
    } catch (const std::bad_alloc&) {
      return false;
    }
    Slot* block = blocks_.back().get();
    for (std::size_t i = 0; i < BlockItems; ++i) {
      block[i].next = free_;
      free_ = &block[i];
    }
    total_ += BlockItems;
    return true;
  }

  std::size_t items_max_;
  std::size_t total_ = 0;
  std::size_t lent_ = 0;
  Slot* free_ = nullptr;
  std::vector<std::unique_ptr<Slot[]>> blocks_;
};

}  // namespace brant
