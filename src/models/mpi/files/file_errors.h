#pragma once

#include <string>
#include <system_error>
#include <utility>

#include "models/mpi/call_error.h"

namespace brant::mpi {

/// The class of the standard that says the same as an error number of the system.
[[nodiscard]] int error_class_of_errno(int number) noexcept;

/// Throws what a call of the system reported: a text that says what was being done, and the system's own reason.
template <typename... Values>
[[noreturn]] void fail_with_errno(int number, fmt::format_string<Values...> text, Values&&... values) {
  const std::string what = fmt::format(text, std::forward<Values>(values)...);
  fail(error_class_of_errno(number), "{}: {}", what, std::generic_category().message(number));
}

}  // namespace brant::mpi
