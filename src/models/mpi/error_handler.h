#pragma once

#include <cstddef>

#include "models/mpi/call_error.h"
#include "models/mpi/object.h"

namespace brant::mpi {

/// What becomes of errors: a handler of the program, or one of the three of the standard.
struct ErrorHandler final : Object {
  static constexpr ObjectKind kKind = ObjectKind::error_handler;
  enum class Action : std::uint8_t { fatal, abort, give_back, call };
  /// All classes of handles have functions of this form, with their own handle in the first argument.
  using Function = void (*)(void* handle, int* error_code, ...);

  ErrorHandler(Action action_in, Function function_in) noexcept
      : Object(kKind), action(action_in), function(function_in) {}

  const Action action;
  const Function function;
  std::size_t users = 1;  ///< The program's handle, and the objects it is set for.
};

/// One user less of a handler that may be predefined.
void drop_handler(ErrorHandler& handler) noexcept;
/// One of the predefined handlers, or one of the program's. Throws MPI_ERR_ERRHANDLER.
[[nodiscard]] ErrorHandler& error_handler_of(MPI_Errhandler handle);
[[nodiscard]] MPI_Errhandler handle_of_handler(ErrorHandler& handler) noexcept;

}  // namespace brant::mpi
