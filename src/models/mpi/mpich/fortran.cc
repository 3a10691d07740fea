#include <cstring>

#include "models/mpi/mpich/arguments.h"
#include "models/mpi/mpich/own_calls.h"
#include "mpi_generated/api.h"

/// Handles and statuses as Fortran has them. Handles are the same integers, but those of files; statuses have the same
/// words. Bindings for Fortran are not here: libmpifort.so.12 of MPICH calls what only MPICH has.
namespace brant::mpi::mpich {

namespace {

int null_words[kFStatusSize] = {};  // NOLINT: what the pointers below point to, for nobody to read or write

/// A status that is to be copied: none of those that stand for nothing.
int copy_status(const void* from, void* to) {
  const bool is_ignorable = from == nullptr || is_ignored(static_cast<const Status*>(from)) || from == null_words;
  if (is_ignorable || to == nullptr) return code_to_mpich(MPI_ERR_ARG);
  std::memcpy(to, from, sizeof(Status));
  return MPI_SUCCESS;
}

}  // namespace

namespace own {

int file_c2f(MPI_File file) { return file == nullptr ? 0 : api::file_toint(file); }
MPI_File file_f2c(int file) { return file == 0 ? nullptr : api::file_fromint(file); }
int file_toint(MPI_File file) { return file_c2f(file); }
MPI_File file_fromint(int file) { return file_f2c(file); }

int status_c2f(const Status* c_status, int* f_status) { return copy_status(c_status, f_status); }
int status_f2c(const int* f_status, Status* c_status) { return copy_status(f_status, c_status); }
int status_c2f08(const Status* c_status, Status* f08_status) { return copy_status(c_status, f08_status); }
int status_f082c(const Status* f08_status, Status* c_status) { return copy_status(f08_status, c_status); }
int status_f082f(const Status* f08_status, int* f_status) { return copy_status(f08_status, f_status); }
int status_f2f08(const int* f_status, Status* f08_status) { return copy_status(f_status, f08_status); }

}  // namespace own
}  // namespace brant::mpi::mpich

// Variables that programs name. Those of weights and of the tools interface have the values of the standard's ABI, so
// that nothing of them is translated.
// NOLINTBEGIN(readability-identifier-naming, misc-misplaced-const): names and types are MPICH's
extern "C" {
MPI_EXPORT extern int* const MPICH_UNWEIGHTED __asm__("MPI_UNWEIGHTED");
MPI_EXPORT extern int* const MPICH_WEIGHTS_EMPTY __asm__("MPI_WEIGHTS_EMPTY");
MPI_EXPORT extern MPI_T_pvar_handle const MPICH_ALL_HANDLES __asm__("MPI_T_PVAR_ALL_HANDLES");
int* const MPICH_UNWEIGHTED = MPI_UNWEIGHTED;
int* const MPICH_WEIGHTS_EMPTY = MPI_WEIGHTS_EMPTY;
MPI_T_pvar_handle const MPICH_ALL_HANDLES = MPI_T_PVAR_ALL_HANDLES;

MPI_EXPORT int* MPI_F_STATUS_IGNORE = brant::mpi::mpich::null_words;
MPI_EXPORT int* MPI_F_STATUSES_IGNORE = brant::mpi::mpich::null_words;
MPI_EXPORT void* MPI_F08_STATUS_IGNORE = brant::mpi::mpich::null_words;
MPI_EXPORT void* MPI_F08_STATUSES_IGNORE = brant::mpi::mpich::null_words;
}
// NOLINTEND(readability-identifier-naming, misc-misplaced-const)
