#pragma once

#include <cassert>

namespace brant {

/// Put into a record as a member, one for each list it may stand in at the same time.
template <typename T>
struct ListHook {
  T* next = nullptr;
  T* previous = nullptr;  ///< Of the first record: itself. Null: it stands in no list.

  [[nodiscard]] bool linked() const noexcept { return previous != nullptr; }
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
  [[nodiscard]] static bool linked(const T& item) noexcept { return (item.*Hook).linked(); }

  void push_back(T& item) noexcept {
    ListHook<T>& hook = item.*Hook;
    assert(!hook.linked() && "a record stands in a list once");
    hook = {nullptr, tail_ != nullptr ? tail_ : &item};
    (tail_ != nullptr ? (tail_->*Hook).next : head_) = &item;
    tail_ = &item;
  }

  void remove(T& item) noexcept {
    ListHook<T>& hook = item.*Hook;
    assert(hook.linked() && "only a linked record can be removed");
    const bool is_first = head_ == &item;
    (is_first ? head_ : (hook.previous->*Hook).next) = hook.next;
    if (hook.next == nullptr) {
      tail_ = is_first ? nullptr : hook.previous;
    } else {
      (hook.next->*Hook).previous = is_first ? hook.next : hook.previous;
    }
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
