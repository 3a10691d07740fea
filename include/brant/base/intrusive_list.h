#pragma once

#include <cassert>

namespace brant {

/// Put into a record as a member, one for each list it may stand in.
template <typename T>
struct ListHook {
  T* next = nullptr;
  T* previous = nullptr;
  bool linked = false;
};

/// A doubly linked list whose links lie in the records: no allocation, removal in constant time.
template <typename T, ListHook<T> T::* Hook>
class IntrusiveList {
 public:
  IntrusiveList() = default;
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;

  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  [[nodiscard]] T* front() const noexcept { return head_; }
  [[nodiscard]] static T* next(const T& item) noexcept { return (item.*Hook).next; }
  [[nodiscard]] static bool linked(const T& item) noexcept { return (item.*Hook).linked; }

  void push_back(T& item) noexcept {
    ListHook<T>& hook = item.*Hook;
    assert(!hook.linked && "a record stands in a list once");
    hook = {nullptr, tail_, true};
    (tail_ != nullptr ? (tail_->*Hook).next : head_) = &item;
    tail_ = &item;
  }

  void remove(T& item) noexcept {
    ListHook<T>& hook = item.*Hook;
    assert(hook.linked && "only a linked record can be removed");
    (hook.previous != nullptr ? (hook.previous->*Hook).next : head_) = hook.next;
    (hook.next != nullptr ? (hook.next->*Hook).previous : tail_) = hook.previous;
    hook = {};
  }

  T* pop_front() noexcept {
    T* item = head_;
    if (item != nullptr) remove(*item);
    return item;
  }

 private:
  T* head_ = nullptr;
  T* tail_ = nullptr;
};

}  // namespace brant
