#pragma once

#include <cstddef>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "brant/base/archive.h"
#include "brant/core/future.h"

namespace brant::detail {

/// Whoever waits for an answer by message: `deliver` is called once, from progress, with the result or with the error.
struct Waiting {
  void (*deliver)(void* storage, ReadArchive* result, std::exception_ptr error) noexcept = nullptr;
  alignas(std::max_align_t) std::byte storage[16];
};

/// Delivers a promise with the value that a message holds. A void promise reads nothing.
template <typename R>
Waiting waiting_for(Promise<R> promise) {
  static_assert(sizeof(Promise<R>) <= sizeof(Waiting::storage));
  Waiting waiting;
  ::new (static_cast<void*>(waiting.storage)) Promise<R>(std::move(promise));
  waiting.deliver = [](void* storage, ReadArchive* result, std::exception_ptr error) noexcept {
    auto* stored = static_cast<Promise<R>*>(storage);
    Promise<R> due = std::move(*stored);
    stored->~Promise<R>();
    if (error) return due.fail(std::move(error));
    try {
      if constexpr (std::is_void_v<R>) {
        due.deliver();
      } else {
        R value{};
        (*result)(value);
        due.deliver(std::move(value));
      }
    } catch (...) {
      due.fail(std::current_exception());
    }
  };
  return waiting;
}

}  // namespace brant::detail
