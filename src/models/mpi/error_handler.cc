#include "models/mpi/error_handler.h"

namespace brant::mpi {

namespace {

ErrorHandler g_fatal{ErrorHandler::Action::fatal, {}};
ErrorHandler g_abort{ErrorHandler::Action::abort, {}};
ErrorHandler g_give_back{ErrorHandler::Action::give_back, {}};

}  // namespace

void drop_handler(ErrorHandler& handler) noexcept {
  if (handler.action == ErrorHandler::Action::call && --handler.users == 0) delete &handler;
}

ErrorHandler& error_handler_of(MPI_Errhandler handle) {
  if (handle == MPI_ERRORS_ARE_FATAL) return g_fatal;
  if (handle == MPI_ERRORS_ABORT) return g_abort;
  if (handle == MPI_ERRORS_RETURN) return g_give_back;
  auto* known = object_of<ErrorHandler>(handle);
  require(known != nullptr, MPI_ERR_ERRHANDLER, "the error handler is null, or none that exists");
  return *known;
}

MPI_Errhandler handle_of_handler(ErrorHandler& handler) noexcept {
  switch (handler.action) {
    case ErrorHandler::Action::fatal: return MPI_ERRORS_ARE_FATAL;
    case ErrorHandler::Action::abort: return MPI_ERRORS_ABORT;
    case ErrorHandler::Action::give_back: return MPI_ERRORS_RETURN;
    case ErrorHandler::Action::call: break;
  }
  return handle_of<MPI_Errhandler>(handler);
}

}  // namespace brant::mpi
