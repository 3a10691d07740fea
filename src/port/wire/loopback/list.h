#pragma once

#include <cstddef>

namespace brant::port::loopback {

/// The links of an item in one list. An item is in at most one list per link member.
template <typename T>
struct Link {
  T* previous = nullptr;
  T* next = nullptr;
  bool linked = false;
};

/// A doubly linked list of items that carry their own links: adding and removing allocate nothing and take constant
/// time.
template <typename T, Link<T> T::* kLink>
class List {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] T* first() const noexcept { return first_; }
  [[nodiscard]] static T* next(const T& item) noexcept { return (item.*kLink).next; }

  void push(T& item) noexcept {
    Link<T>& link = item.*kLink;
    link.previous = last_;
    link.next = nullptr;
    link.linked = true;
    (last_ != nullptr ? (last_->*kLink).next : first_) = &item;
    last_ = &item;
    ++size_;
  }
  void remove(T& item) noexcept {
    Link<T>& link = item.*kLink;
    if (!link.linked) return;
    (link.previous != nullptr ? (link.previous->*kLink).next : first_) = link.next;
    (link.next != nullptr ? (link.next->*kLink).previous : last_) = link.previous;
    link = {};
    --size_;
  }
  T* pop() noexcept {
    T* item = first_;
    if (item != nullptr) remove(*item);
    return item;
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
  std::size_t size_ = 0;
};

/// Lends items; grows by blocks, up to a bound of items lent at once, and never shrinks.
template <typename T, Link<T> T::* kLink, std::size_t kPerBlock>
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
    return free_.pop();
  }
  void give(T& item) noexcept {
    --lent_;
    free_.push(item);
  }

 private:
  struct Block {
    T items[kPerBlock];
    Block* next = nullptr;
  };

  bool grow() noexcept;

  List<T, kLink> free_;
  Block* blocks_ = nullptr;
  std::size_t items_max_;
  std::size_t lent_ = 0;
};

}  // namespace brant::port::loopback

#include "port/wire/loopback/list.inl.h"
