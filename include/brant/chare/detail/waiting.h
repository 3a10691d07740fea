#pragma once

#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "brant/base/archive.h"
#include "brant/chare/detail/core.h"
#include "brant/core/future.h"

namespace brant::detail {

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
