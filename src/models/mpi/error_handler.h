#pragma once

#include <cstddef>

#include "brant/base/api.h"
#include "models/mpi/call_error.h"
#include "models/mpi/object.h"
#include "models/mpi/types/bound_operation.h"

namespace brant::mpi {

/// A handler of the program: `call` knows the ABI that the function was compiled for.
struct BoundErrorHandler {
  /// `handle`: where that of the object lies. `code` may be changed.
  using Call = void(ProgramFunction function, void* handle, int* code);

  Call* call = nullptr;
  ProgramFunction function = nullptr;
};

/// What becomes of errors: a handler of the program, or one of the three of the standard.
struct ErrorHandler final : Object {
  static constexpr ObjectKind kKind = ObjectKind::error_handler;
  enum class Action : std::uint8_t { fatal, abort, give_back, call };
  /// `bound_in`: what is called where the action is to call something.
  ErrorHandler(Action action_in, const BoundErrorHandler& bound_in) noexcept
      : Object(kKind), action(action_in), bound(bound_in) {}

  const Action action;
  const BoundErrorHandler bound;
  std::size_t users = 1;  ///< The program's handle, and the objects it is set for.
};

/// One user less of a handler that may be predefined.
void drop_handler(ErrorHandler& handler) noexcept;
/// One of the predefined handlers, or one of the program's. Throws MPI_ERR_ERRHANDLER.
[[nodiscard]] ErrorHandler& error_handler_of(MPI_Errhandler handle);
[[nodiscard]] MPI_Errhandler handle_of_handler(ErrorHandler& handler) noexcept;

namespace api {

/// As MPI_Comm_create_errhandler and its like; errors name `function`.
BRANT_API int errhandler_create_bound(const char* function, const BoundErrorHandler& handler,
                                      MPI_Errhandler* errhandler) noexcept;

}  // namespace api
}  // namespace brant::mpi
