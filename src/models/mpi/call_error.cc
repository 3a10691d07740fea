#include "models/mpi/call_error.h"

#include <algorithm>

namespace brant::mpi {

namespace {

struct ClassRow {
  int value;
  const char* name;
  const char* text;
};

constexpr ClassRow kClasses[] = {
    {MPI_SUCCESS, "MPI_SUCCESS", "no error"},
    {MPI_ERR_BUFFER, "MPI_ERR_BUFFER", "the buffer cannot be used"},
    {MPI_ERR_COUNT, "MPI_ERR_COUNT", "the count is negative or too large"},
    {MPI_ERR_TYPE, "MPI_ERR_TYPE", "the datatype is none, or not committed"},
    {MPI_ERR_TAG, "MPI_ERR_TAG", "the tag is outside the range of tags"},
    {MPI_ERR_COMM, "MPI_ERR_COMM", "the communicator is none"},
    {MPI_ERR_RANK, "MPI_ERR_RANK", "the rank is outside the communicator"},
    {MPI_ERR_REQUEST, "MPI_ERR_REQUEST", "the request is none"},
    {MPI_ERR_ROOT, "MPI_ERR_ROOT", "the root is outside the communicator"},
    {MPI_ERR_GROUP, "MPI_ERR_GROUP", "the group is none"},
    {MPI_ERR_OP, "MPI_ERR_OP", "the operation is none, or not defined for the datatype"},
    {MPI_ERR_TOPOLOGY, "MPI_ERR_TOPOLOGY", "the communicator has no such topology"},
    {MPI_ERR_DIMS, "MPI_ERR_DIMS", "the dimensions are wrong"},
    {MPI_ERR_ARG, "MPI_ERR_ARG", "an argument is wrong"},
    {MPI_ERR_UNKNOWN, "MPI_ERR_UNKNOWN", "an error of unknown kind"},
    {MPI_ERR_TRUNCATE, "MPI_ERR_TRUNCATE", "the message is longer than the receive buffer"},
    {MPI_ERR_OTHER, "MPI_ERR_OTHER", "another error"},
    {MPI_ERR_INTERN, "MPI_ERR_INTERN", "an error inside the library"},
    {MPI_ERR_PENDING, "MPI_ERR_PENDING", "the request has not ended"},
    {MPI_ERR_IN_STATUS, "MPI_ERR_IN_STATUS", "the statuses have the errors"},
    {MPI_ERR_ACCESS, "MPI_ERR_ACCESS", "permission denied"},
    {MPI_ERR_AMODE, "MPI_ERR_AMODE", "the access mode is wrong"},
    {MPI_ERR_ASSERT, "MPI_ERR_ASSERT", "the assertion is wrong"},
    {MPI_ERR_BAD_FILE, "MPI_ERR_BAD_FILE", "the file name is wrong"},
    {MPI_ERR_BASE, "MPI_ERR_BASE", "the base of the memory is wrong"},
    {MPI_ERR_CONVERSION, "MPI_ERR_CONVERSION", "a conversion of data failed"},
    {MPI_ERR_DISP, "MPI_ERR_DISP", "the displacement is wrong"},
    {MPI_ERR_DUP_DATAREP, "MPI_ERR_DUP_DATAREP", "the data representation exists already"},
    {MPI_ERR_FILE_EXISTS, "MPI_ERR_FILE_EXISTS", "the file exists"},
    {MPI_ERR_FILE_IN_USE, "MPI_ERR_FILE_IN_USE", "the file is in use"},
    {MPI_ERR_FILE, "MPI_ERR_FILE", "the file handle is none"},
    {MPI_ERR_INFO_KEY, "MPI_ERR_INFO_KEY", "the key is too long"},
    {MPI_ERR_INFO_NOKEY, "MPI_ERR_INFO_NOKEY", "the info object has no such key"},
    {MPI_ERR_INFO_VALUE, "MPI_ERR_INFO_VALUE", "the value is too long"},
    {MPI_ERR_INFO, "MPI_ERR_INFO", "the info object is none"},
    {MPI_ERR_IO, "MPI_ERR_IO", "an error of input or output"},
    {MPI_ERR_KEYVAL, "MPI_ERR_KEYVAL", "the key value is none"},
    {MPI_ERR_LOCKTYPE, "MPI_ERR_LOCKTYPE", "the type of the lock is wrong"},
    {MPI_ERR_NAME, "MPI_ERR_NAME", "nobody has published this name"},
    {MPI_ERR_NO_MEM, "MPI_ERR_NO_MEM", "memory is exhausted"},
    {MPI_ERR_NOT_SAME, "MPI_ERR_NOT_SAME", "the processes gave different arguments"},
    {MPI_ERR_NO_SPACE, "MPI_ERR_NO_SPACE", "the device is full"},
    {MPI_ERR_NO_SUCH_FILE, "MPI_ERR_NO_SUCH_FILE", "the file does not exist"},
    {MPI_ERR_PORT, "MPI_ERR_PORT", "the port is none"},
    {MPI_ERR_QUOTA, "MPI_ERR_QUOTA", "the quota is exceeded"},
    {MPI_ERR_READ_ONLY, "MPI_ERR_READ_ONLY", "the file is read-only"},
    {MPI_ERR_RMA_ATTACH, "MPI_ERR_RMA_ATTACH", "the memory cannot be attached"},
    {MPI_ERR_RMA_CONFLICT, "MPI_ERR_RMA_CONFLICT", "accesses to the window conflict"},
    {MPI_ERR_RMA_RANGE, "MPI_ERR_RMA_RANGE", "the target is outside the window"},
    {MPI_ERR_RMA_SHARED, "MPI_ERR_RMA_SHARED", "the memory cannot be shared"},
    {MPI_ERR_RMA_SYNC, "MPI_ERR_RMA_SYNC", "the window is not synchronised so"},
    {MPI_ERR_SERVICE, "MPI_ERR_SERVICE", "the name was not unpublished"},
    {MPI_ERR_SIZE, "MPI_ERR_SIZE", "the size is wrong"},
    {MPI_ERR_SPAWN, "MPI_ERR_SPAWN", "the processes did not start"},
    {MPI_ERR_UNSUPPORTED_DATAREP, "MPI_ERR_UNSUPPORTED_DATAREP", "the data representation is not supported"},
    {MPI_ERR_UNSUPPORTED_OPERATION, "MPI_ERR_UNSUPPORTED_OPERATION", "the operation is not supported"},
    {MPI_ERR_WIN, "MPI_ERR_WIN", "the window is none"},
    {MPI_ERR_RMA_FLAVOR, "MPI_ERR_RMA_FLAVOR", "the window is of the wrong flavor"},
    {MPI_ERR_PROC_ABORTED, "MPI_ERR_PROC_ABORTED", "a process that takes part has died"},
    {MPI_ERR_VALUE_TOO_LARGE, "MPI_ERR_VALUE_TOO_LARGE", "the value is too large for its variable"},
    {MPI_ERR_SESSION, "MPI_ERR_SESSION", "the session is none"},
    {MPI_ERR_ERRHANDLER, "MPI_ERR_ERRHANDLER", "the error handler is none"},
    {MPI_ERR_ABI, "MPI_ERR_ABI", "the ABI is another one"},
};

const ClassRow* find_class(int error_class) noexcept {
  const auto* found = std::ranges::find(kClasses, error_class, &ClassRow::value);
  return found != std::end(kClasses) ? found : nullptr;
}

}  // namespace

int error_class_of(Status status) noexcept {
  switch (status) {
    case Status::ok: return MPI_SUCCESS;
    case Status::invalid_argument: return MPI_ERR_ARG;
    case Status::wrong_kind: return MPI_ERR_BUFFER;
    case Status::truncated: return MPI_ERR_TRUNCATE;
    case Status::not_supported: return MPI_ERR_UNSUPPORTED_OPERATION;
    case Status::peer_lost:
    case Status::peer_rejected: return MPI_ERR_PROC_ABORTED;
    case Status::no_memory: return MPI_ERR_NO_MEM;
    case Status::internal: return MPI_ERR_INTERN;
    default: return MPI_ERR_OTHER;
  }
}

const char* error_class_text(int error_class) noexcept {
  const ClassRow* found = find_class(error_class);
  return found != nullptr ? found->text : nullptr;
}

const char* error_class_name(int error_class) noexcept {
  const ClassRow* found = find_class(error_class);
  return found != nullptr ? found->name : nullptr;
}

}  // namespace brant::mpi
