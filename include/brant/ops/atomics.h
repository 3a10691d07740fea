#pragma once

#include <coroutine>
#include <string_view>
#include <utility>

#include "brant/base/atomic.h"
#include "brant/core/operation.h"

namespace brant {

/// What became of an atomic, and the value that its word had before; without meaning unless it is ok.
template <AtomicValue T>
struct [[nodiscard]] Fetched : OpResult {
  T before{};

  /// The value, if it is ok; else throws an Error, whose text begins with `what` was attempted.
  T value(std::string_view what = "an atomic failed") const {
    static_cast<void>(or_throw(what));
    return before;
  }
};

namespace detail {

/// A base, so that it is there when the operation begins, which may end at once.
template <AtomicValue T>
struct FetchPlace {
  T before{};
};

}  // namespace detail

/// An atomic that tells the value before: an Operation (with all its rules), whose `co_await` gives a Fetched. It
/// allocates nothing.
///
///     const Fetched<std::uint64_t> ticket = co_await there.fetch_add<std::uint64_t>(0, 1);
template <AtomicValue T>
class [[nodiscard]] FetchOperation : private detail::FetchPlace<T>, public Operation {
 public:
  /// `post(Op&, T* before)` starts it.
  template <typename Post>
  explicit FetchOperation(const Post& post) noexcept
      : Operation(Moment::delivered, [&](Op& op) noexcept { return post(op, &this->before); }) {}

  /// Valid once done.
  [[nodiscard]] Fetched<T> fetched() const noexcept { return {result(), this->before}; }

  /// Stands before that of an Operation, which lets one await it without the value.
  // NOLINTNEXTLINE(bugprone-derived-method-shadowing-base-method)
  auto operator co_await() noexcept { return Awaiter{Operation::operator co_await(), *this}; }

 private:
  using Waiting = decltype(std::declval<Operation&>().operator co_await());

  struct Awaiter {
    Waiting waiting;
    FetchOperation& operation;
    bool await_ready() const noexcept { return waiting.await_ready(); }
    void await_suspend(std::coroutine_handle<> waiter) { waiting.await_suspend(waiter); }
    [[nodiscard]] Fetched<T> await_resume() const noexcept { return operation.fetched(); }
  };
};

}  // namespace brant
