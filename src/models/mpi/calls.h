#pragma once

#include <new>
#include <type_traits>

#include "brant/base/status.h"
#include "models/mpi/call_error.h"
#include "models/mpi/communicator.h"
#include "models/mpi/process.h"
#include "models/mpi/rank_state.h"
#include "models/mpi/request.h"

/// What the functions of the standard have in common: they find the object of a handle, do their work, and hand what
/// goes wrong to an error handler.
namespace brant::mpi {

class File;
class Window;

/// Calls the error handler of a communicator, or for null that of MPI_COMM_SELF: what the standard does with errors
/// that belong to none. Returns what the function of MPI is to return.
int hand_over(Communicator* communicator, const char* function, const CallError& error) noexcept;
/// The same by a handler that the owner does not have, or not yet.
int hand_over(Communicator& owner, const ErrorHandler& handler, const char* function, const CallError& error) noexcept;
int hand_over(Window* window, const char* function, const CallError& error) noexcept;
/// Null: of errors that belong to no file. That handler is MPI_FILE_NULL's.
int hand_over(File* file, const char* function, const CallError& error) noexcept;
/// Ends the job where MPI is not initialised.
void require_process(const char* function) noexcept;

/// Runs the body of a function of MPI: its result, or MPI_SUCCESS. `owner`: a communicator, a window or a file.
template <typename Owner, typename Body>
int call(const char* function, Owner* owner, Body&& body) noexcept {
  require_process(function);
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return MPI_SUCCESS;
    } else {
      return body();
    }
  } catch (const CallError& error) {
    return hand_over(owner, function, error);
  } catch (const Error& error) {
    return hand_over(owner, function, CallError(error_class_of(error.status()), error.what()));
  } catch (const std::bad_alloc&) {
    return hand_over(owner, function, CallError(MPI_ERR_NO_MEM, {}));
  }
}

/// The same for a function that belongs to no communicator.
template <typename Body>
int call(const char* function, Body&& body) noexcept {
  return call(function, static_cast<Communicator*>(nullptr), std::forward<Body>(body));
}

/// Null: it is null, or none that exists.
[[nodiscard]] Communicator* find_communicator(MPI_Comm handle) noexcept;
[[nodiscard]] Communicator& communicator_of(MPI_Comm handle);
[[nodiscard]] MPI_Comm handle_of_communicator(Communicator& communicator) noexcept;

/// The body gets the communicator of a handle.
template <typename Body>
int on_communicator(const char* function, MPI_Comm handle, Body&& body) noexcept {
  require_process(function);
  Communicator* communicator = find_communicator(handle);
  return call(function, communicator, [&] {
    require(communicator != nullptr, MPI_ERR_COMM, "the communicator is MPI_COMM_NULL, or none that exists");
    return body(*communicator);
  });
}

/// Null for MPI_REQUEST_NULL. Throws MPI_ERR_REQUEST.
[[nodiscard]] Request* find_request(MPI_Request handle);
/// Throws MPI_ERR_KEYVAL.
void require_key(int number);
[[nodiscard]] const Members& members_of(MPI_Group handle);
[[nodiscard]] SharedMembers shared_members_of(MPI_Group handle);
[[nodiscard]] Info& info_of(MPI_Info handle);
/// A copy that the program gets, to free it.
[[nodiscard]] MPI_Info publish_copy(const Info& info);
/// A group that the program gets, to free it.
[[nodiscard]] MPI_Group publish_group(SharedMembers members);
/// As much of a name as objects keep.
[[nodiscard]] std::string_view object_name(const char* name) noexcept;

/// Throws MPI_ERR_RANK.
void require_rank(const Communicator& communicator, int rank, const char* what);
/// Throws MPI_ERR_ROOT. Between two groups MPI_ROOT and MPI_PROC_NULL are roots.
void require_root(const Communicator& communicator, int root);
/// Throw MPI_ERR_COMM.
void require_one_group(const Communicator& communicator);
void require_two_groups(const Communicator& communicator);
/// Throws MPI_ERR_ARG where a result has no place.
void require_place(const void* place, const char* what);

/// Copies with a zero at the end; `length` without it.
void store_text(std::string_view text, char* place, int room, int* length) noexcept;

}  // namespace brant::mpi
