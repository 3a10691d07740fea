#pragma once

#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "brant/base/status.h"

namespace brant {

/// A value or the status that says why there is none. For set-up calls that are expected to fail (probing).
/// Reading the value of a failed result ends the program: check `ok()` first.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): reads as a return value
  Result(Status status) : status_(status) {      // NOLINT(google-explicit-constructor)
    if (status == Status::ok) std::abort();      // a failure needs a reason
  }

  [[nodiscard]] bool ok() const noexcept { return value_.has_value(); }
  [[nodiscard]] explicit operator bool() const noexcept { return ok(); }
  [[nodiscard]] Status status() const noexcept { return status_; }

  /// The value; of a failed result it throws an Error, whose text begins with `what` was attempted.
  T or_throw(std::string_view what) && {
    if (!ok()) throw_error(status_, what);
    return *std::move(value_);
  }

  [[nodiscard]] T& value() & noexcept { return checked(), *value_; }
  [[nodiscard]] const T& value() const& noexcept { return checked(), *value_; }
  [[nodiscard]] T&& value() && noexcept { return checked(), std::move(*value_); }
  T& operator*() & noexcept { return value(); }
  const T& operator*() const& noexcept { return value(); }
  T* operator->() noexcept { return &value(); }
  const T* operator->() const noexcept { return &value(); }

 private:
  void checked() const noexcept {
    if (!value_) std::abort();
  }

  std::optional<T> value_;
  Status status_ = Status::ok;
};

}  // namespace brant
