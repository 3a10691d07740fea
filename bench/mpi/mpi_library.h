#pragma once

#include <cstddef>
#include <string>

/// An MPI library as a rival in benchmarks: found and loaded at run time, never linked. This folder is
/// the only one that knows it.
namespace brant::bench::mpi {

/// What an MPI calls a communicator, a type or an op: a number of 32 bits for MPICH and its kin, an address for Open
/// MPI. Both are handed over in one register, of which MPICH looks at the lower half.
using Handle = void*;

/// The functions and names that are used. All functions return 0 for success.
struct Library {
  int (*init)(int* argc, char*** argv) = nullptr;
  int (*finalize)() = nullptr;
  int (*get_library_version)(char* text, int* length) = nullptr;
  int (*comm_rank)(Handle comm, int* rank) = nullptr;
  int (*comm_size)(Handle comm, int* size) = nullptr;
  int (*barrier)(Handle comm) = nullptr;
  int (*bcast)(void* data, int count, Handle type, int root, Handle comm) = nullptr;
  int (*allreduce)(const void* in, void* out, int count, Handle type, Handle op, Handle comm) = nullptr;
  int (*allgather)(const void* in, int in_count, Handle in_type, void* out, int out_count, Handle out_type,
                   Handle comm) = nullptr;
  int (*reduce_scatter_block)(const void* in, void* out, int count, Handle type, Handle op, Handle comm) = nullptr;
  int (*alltoall)(const void* in, int in_count, Handle in_type, void* out, int out_count, Handle out_type,
                  Handle comm) = nullptr;

  int (*send)(const void* data, int count, Handle type, int rank, int tag, Handle comm) = nullptr;
  int (*recv)(void* data, int count, Handle type, int rank, int tag, Handle comm, void* status) = nullptr;
  int (*win_allocate)(std::ptrdiff_t bytes, int unit, Handle info, Handle comm, void** base, Handle* window) = nullptr;
  int (*win_free)(Handle* window) = nullptr;
  int (*win_lock_all)(int hint, Handle window) = nullptr;
  int (*win_unlock_all)(Handle window) = nullptr;
  int (*win_flush)(int rank, Handle window) = nullptr;
  int (*put)(const void* local, int count, Handle type, int rank, std::ptrdiff_t offset, int there, Handle there_type,
             Handle window) = nullptr;
  int (*get)(void* local, int count, Handle type, int rank, std::ptrdiff_t offset, int there, Handle there_type,
             Handle window) = nullptr;

  Handle world = nullptr;
  Handle byte_type = nullptr;
  Handle no_info = nullptr;
  Handle float_type = nullptr;
  Handle double_type = nullptr;
  Handle sum = nullptr;
  Handle max = nullptr;

  std::string version;  ///< "MPICH 5.0.2", "Open MPI v5.0.11"
};

/// Loads `file` for good; once in a process. Throws Error: not_found; version_mismatch for a library that lacks one of
/// the functions above.
Library load(const std::string& file);

}  // namespace brant::bench::mpi
