#include <memory>

#include "models/mpi/calls.h"
#include "models/mpi/last_error.h"
#include "models/mpi/rank_life.h"
#include "mpi_generated/api.h"

namespace brant::mpi {

namespace api {

namespace {

UserErrors& user_errors() noexcept { return rank_life().errors; }

/// Handlers of all classes of handles have one form, but for the type of the handle that they get.
void call_handler(ProgramFunction function, void* handle, int* code) {
  reinterpret_cast<void (*)(void*, int*, ...)>(function)(handle, code);
}

template <typename Function>
int create_handler(const char* function, Function* handler, MPI_Errhandler* errhandler) noexcept {
  return errhandler_create_bound(function, {call_handler, reinterpret_cast<ProgramFunction>(handler)}, errhandler);
}

void remove_unused(int code) {
  require(!user_errors().is_used(code), MPI_ERR_ARG,
          "{} has a text, or codes of its class, which must be removed first", code);
  user_errors().remove(code);
}

}  // namespace

int errhandler_create_bound(const char* function, const BoundErrorHandler& handler,
                            MPI_Errhandler* errhandler) noexcept {
  return call_at_any_time(function, [&] {
    require_place(reinterpret_cast<const void*>(handler.function), "the function");
    require_place(static_cast<const void*>(errhandler), "errhandler");
    *errhandler =
        handle_of<MPI_Errhandler>(*std::make_unique<ErrorHandler>(ErrorHandler::Action::call, handler).release());
  });
}

int comm_create_errhandler(MPI_Comm_errhandler_function* comm_errhandler_fn, MPI_Errhandler* errhandler) noexcept {
  return create_handler("MPI_Comm_create_errhandler", comm_errhandler_fn, errhandler);
}

int win_create_errhandler(MPI_Win_errhandler_function* win_errhandler_fn, MPI_Errhandler* errhandler) noexcept {
  return create_handler("MPI_Win_create_errhandler", win_errhandler_fn, errhandler);
}

int file_create_errhandler(MPI_File_errhandler_function* file_errhandler_fn, MPI_Errhandler* errhandler) noexcept {
  return create_handler("MPI_File_create_errhandler", file_errhandler_fn, errhandler);
}

int session_create_errhandler(MPI_Session_errhandler_function* session_errhandler_fn,
                              MPI_Errhandler* errhandler) noexcept {
  return create_handler("MPI_Session_create_errhandler", session_errhandler_fn, errhandler);
}

int comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler) noexcept {
  return on_communicator("MPI_Comm_set_errhandler", comm,
                         [&](Communicator& c) { c.set_handler(error_handler_of(errhandler)); });
}

int comm_get_errhandler(MPI_Comm comm, MPI_Errhandler* errhandler) noexcept {
  return on_communicator("MPI_Comm_get_errhandler", comm, [&](const Communicator& c) {
    require_place(static_cast<const void*>(errhandler), "errhandler");
    ++c.handler->users;
    *errhandler = handle_of_handler(*c.handler);
  });
}

int comm_call_errhandler(MPI_Comm comm, int errorcode) noexcept {
  return on_communicator("MPI_Comm_call_errhandler", comm, [&](Communicator& c) {
    static_cast<void>(
        hand_over(&c, "MPI_Comm_call_errhandler", CallError(errorcode, "the program called the handler")));
  });
}

int errhandler_free(MPI_Errhandler* errhandler) noexcept {
  return call_at_any_time("MPI_Errhandler_free", [&] {
    require_place(static_cast<const void*>(errhandler), "errhandler");
    drop_handler(error_handler_of(*errhandler));
    *errhandler = MPI_ERRHANDLER_NULL;
  });
}

int error_class(int errorcode, int* errorclass) noexcept {
  *errorclass = user_errors().has(errorcode)             ? user_errors().class_of(errorcode)
                : error_class_text(errorcode) != nullptr ? errorcode
                                                         : MPI_ERR_UNKNOWN;
  return MPI_SUCCESS;
}

int error_string(int errorcode, char* string, int* resultlen) noexcept {
  if (user_errors().has(errorcode)) {
    store_text(user_errors().text(errorcode), string, MPI_MAX_ERROR_STRING, resultlen);
    return MPI_SUCCESS;
  }
  const char* text = error_class_text(errorcode);
  const char* name = error_class_name(errorcode);
  return call_at_any_time("MPI_Error_string", [&] {
    require(text != nullptr, MPI_ERR_ARG, "{} is no error code", errorcode);
    const std::string_view last = last_error_text(errorcode);
    store_text(fmt::format("{}: {}{}{}", name, text, last.empty() ? "" : ". The last one: ", last), string,
               MPI_MAX_ERROR_STRING, resultlen);
  });
}

int add_error_class(int* errorclass) noexcept {
  return call_at_any_time("MPI_Add_error_class", [&] { *errorclass = user_errors().add_class(); });
}

int add_error_code(int errorclass, int* errorcode) noexcept {
  return call_at_any_time("MPI_Add_error_code", [&] {
    require(user_errors().is_class(errorclass) || error_class_text(errorclass) != nullptr, MPI_ERR_ARG,
            "{} is no error class", errorclass);
    *errorcode = user_errors().add_code(errorclass);
  });
}

int add_error_string(int errorcode, const char* string) noexcept {
  return call_at_any_time("MPI_Add_error_string", [&] {
    require(user_errors().has(errorcode), MPI_ERR_ARG, "{} is no error code that the program has added", errorcode);
    user_errors().text(errorcode) = string;
  });
}

int remove_error_class(int errorclass) noexcept {
  return call_at_any_time("MPI_Remove_error_class", [&] {
    require(user_errors().is_class(errorclass), MPI_ERR_ARG, "{} is no error class that the program has added",
            errorclass);
    remove_unused(errorclass);
  });
}

int remove_error_code(int errorcode) noexcept {
  return call_at_any_time("MPI_Remove_error_code", [&] {
    const bool is_code = user_errors().has(errorcode) && !user_errors().is_class(errorcode);
    require(is_code, MPI_ERR_ARG, "{} is no error code that the program has added", errorcode);
    remove_unused(errorcode);
  });
}

int remove_error_string(int errorcode) noexcept {
  return call_at_any_time("MPI_Remove_error_string", [&] {
    require(user_errors().has(errorcode), MPI_ERR_ARG, "{} is no error code that the program has added", errorcode);
    user_errors().text(errorcode).clear();
  });
}

}  // namespace api
}  // namespace brant::mpi
