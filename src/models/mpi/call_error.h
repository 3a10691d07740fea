#pragma once

#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "brant/base/status.h"
#include "brant/mpi/mpi.h"

namespace brant::mpi {

/// As a number: in mpi.h it is an enumerator.
inline constexpr int kSuccess = MPI_SUCCESS;

/// Why a call of MPI fails: an error class of the standard, and a text for people. Thrown within a call, and caught
/// where that hands it to an error handler.
class CallError final : public std::exception {
 public:
  CallError(int error_class, std::string text) noexcept : error_class_(error_class), text_(std::move(text)) {}

  [[nodiscard]] int error_class() const noexcept { return error_class_; }
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  int error_class_;
  std::string text_;
};

template <typename... Values>
[[noreturn]] void fail(int error_class, fmt::format_string<Values...> text, Values&&... values) {
  throw CallError(error_class, fmt::format(text, std::forward<Values>(values)...));
}

template <typename... Values>
void require(bool holds, int error_class, fmt::format_string<Values...> text, Values&&... values) {
  if (!holds) [[unlikely]]
    fail(error_class, text, std::forward<Values>(values)...);
}

/// The class that says the same as a status of brant; MPI_SUCCESS for ok.
[[nodiscard]] int error_class_of(Status status) noexcept;

/// What fails within a call; nothing if all went well.
template <typename Body>
[[nodiscard]] std::optional<CallError> error_in(const Body& body) {
  try {
    body();
  } catch (const CallError& error) {
    return error;
  } catch (const Error& error) {
    return CallError(error_class_of(error.status()), error.what());
  } catch (const std::bad_alloc&) {
    return CallError(MPI_ERR_NO_MEM, {});
  }
  return std::nullopt;
}

/// What a class means, in a line; null if there is no such class.
[[nodiscard]] const char* error_class_text(int error_class) noexcept;
/// "MPI_ERR_RANK"; null if there is no such class.
[[nodiscard]] const char* error_class_name(int error_class) noexcept;

}  // namespace brant::mpi
