#pragma once

#include <new>
#include <string>
#include <type_traits>

#include "brant/base/status.h"
#include "models/mpi/call_error.h"
#include "models/mpi/checks/checks.h"
#include "models/mpi/communicator.h"
#include "models/mpi/process.h"
#include "models/mpi/rank_state.h"
#include "models/mpi/request.h"

/// What the functions of the standard have in common: they find the object of a handle, do their work, and hand what
/// goes wrong to an error handler.
namespace brant::mpi {

class File;
class Window;

/// For people: its name, or what it is. The other: that of the group which ranks in calls name.
[[nodiscard]] std::string name_of(const Communicator& communicator);
[[nodiscard]] std::string name_of_peers(const Communicator& communicator);

/// An object that a call is to make, and whose error handler is known already.
struct Unmade {
  const ErrorHandler& handler;
  void* handle;  ///< That the handler gets: one of the null handles.
};

/// Calls the error handler of a communicator, or for null that of MPI_COMM_SELF: what the standard does with errors
/// that belong to none. Where the world is not there, those end the job. Returns what the function of MPI is to return.
int hand_over(Communicator* communicator, const char* function, const CallError& error) noexcept;
int hand_over(Window* window, const char* function, const CallError& error) noexcept;
int hand_over(Session* session, const char* function, const CallError& error) noexcept;
/// Null: of errors that belong to no file. That handler is MPI_FILE_NULL's.
int hand_over(File* file, const char* function, const CallError& error) noexcept;
int hand_over(const Unmade* unmade, const char* function, const CallError& error) noexcept;
[[noreturn]] void end_outside(const char* function) noexcept;
/// Ends the job where the rank may not call MPI: its world is not there, and no session is open.
inline void require_open(const char* function) noexcept {
  if (!is_open()) [[unlikely]]
    end_outside(function);
}

/// As `call`, for what the standard allows before MPI is initialised and after it has ended, too.
template <typename Owner, typename Body>
int call_at_any_time(const char* function, Owner* owner, Body&& body) noexcept {
  if (checks() != nullptr) [[unlikely]]
    checks()->enter(function);
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

/// Runs the body of a function of MPI: its result, or MPI_SUCCESS. `owner`: a communicator, a window, a file, a
/// session, or an object that is to be made.
template <typename Owner, typename Body>
int call(const char* function, Owner* owner, Body&& body) noexcept {
  require_open(function);
  return call_at_any_time(function, owner, std::forward<Body>(body));
}

/// The same for functions that belong to no object with an error handler.
template <typename Body>
int call(const char* function, Body&& body) noexcept {
  return call(function, static_cast<Communicator*>(nullptr), std::forward<Body>(body));
}
template <typename Body>
int call_at_any_time(const char* function, Body&& body) noexcept {
  return call_at_any_time(function, static_cast<Communicator*>(nullptr), std::forward<Body>(body));
}

/// Null: it is null, or none that exists.
[[nodiscard]] Communicator* find_communicator(MPI_Comm handle) noexcept;
[[nodiscard]] Communicator& communicator_of(MPI_Comm handle);
/// Throws MPI_ERR_COMM, with what there is to say of a handle without a communicator.
[[noreturn]] void fail_without_communicator(MPI_Comm handle);
/// What an enqueued call ended with, once.
[[noreturn]] void throw_late(Communicator& communicator);
[[nodiscard]] MPI_Comm handle_of_communicator(Communicator& communicator) noexcept;

/// As `on_communicator`, for what frees it: the body itself tells what enqueued calls have ended with.
template <typename Body>
int on_leaving_communicator(const char* function, MPI_Comm handle, Body&& body) noexcept {
  require_open(function);
  Communicator* communicator = find_communicator(handle);
  return call_at_any_time(function, communicator, [&] {
    if (communicator == nullptr) [[unlikely]]
      fail_without_communicator(handle);
    return body(*communicator);
  });
}

/// The body gets the communicator of a handle.
template <typename Body>
int on_communicator(const char* function, MPI_Comm handle, Body&& body) noexcept {
  return on_leaving_communicator(function, handle, [&](Communicator& communicator) {
    if (communicator.late != nullptr) [[unlikely]]
      throw_late(communicator);
    return body(communicator);
  });
}

/// The body gets the session of a handle.
template <typename Body>
int on_session(const char* function, MPI_Session handle, Body&& body) noexcept {
  require_open(function);
  Session* const session = object_of<Session>(handle);
  return call_at_any_time(function, session, [&] {
    require(session != nullptr, MPI_ERR_SESSION, "the session is MPI_SESSION_NULL, or none that is open");
    return body(*session);
  });
}

/// Null for MPI_REQUEST_NULL. Throws MPI_ERR_REQUEST.
[[nodiscard]] Request* find_request(MPI_Request handle);
/// Throws MPI_ERR_KEYVAL.
void require_key(int number);
[[nodiscard]] const Members& members_of(MPI_Group handle);
[[nodiscard]] SharedMembers shared_members_of(MPI_Group handle);
/// The number of the session that a group derives from; 0: of none, or it is no group.
[[nodiscard]] std::uint64_t session_number_of(MPI_Group handle) noexcept;
[[nodiscard]] Info& info_of(MPI_Info handle);
/// A copy that the program gets, to free it.
[[nodiscard]] MPI_Info publish_copy(const Info& info);
/// A group that the program gets, to free it. `session`: the number of the one that it derives from.
[[nodiscard]] MPI_Group publish_group(SharedMembers members, std::uint64_t session);
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
