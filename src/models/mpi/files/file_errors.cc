#include "models/mpi/files/file_errors.h"

#include <cerrno>

namespace brant::mpi {

int error_class_of_errno(int number) noexcept {
  switch (number) {
    case ENOENT: return MPI_ERR_NO_SUCH_FILE;
    case EEXIST: return MPI_ERR_FILE_EXISTS;
    case EACCES:
    case EPERM: return MPI_ERR_ACCESS;
    case EROFS: return MPI_ERR_READ_ONLY;
    case ENOSPC: return MPI_ERR_NO_SPACE;
    case EDQUOT: return MPI_ERR_QUOTA;
    case EBUSY:
    case ETXTBSY: return MPI_ERR_FILE_IN_USE;
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
    case ENXIO:
    case ENODEV: return MPI_ERR_BAD_FILE;
    case ENOMEM: return MPI_ERR_NO_MEM;
    case EFAULT: return MPI_ERR_BUFFER;
    case EOPNOTSUPP:
    case ENOSYS:
    case ENOLCK:
    case ESPIPE: return MPI_ERR_UNSUPPORTED_OPERATION;
    default: return MPI_ERR_IO;
  }
}

}  // namespace brant::mpi
