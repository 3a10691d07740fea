#pragma once

#include <cstddef>
#include <string>

/// MPI libraries in benchmarks, brant's own and rivals: found and loaded at run time, never linked. This folder is the
/// only one that knows what they differ in.
namespace brant::bench::mpi {

/// What an MPI calls a communicator, a type or an op: a number of 32 bits for MPICH and its kin, an address for Open
/// MPI and in the standard ABI, which is brant's. All are handed over in one register, of which MPICH looks at the
/// lower half.
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
  int (*sendrecv)(const void* out, int out_count, Handle out_type, int to, int out_tag, void* in, int in_count,
                  Handle in_type, int from, int in_tag, Handle comm, void* status) = nullptr;
  int (*isend)(const void* data, int count, Handle type, int rank, int tag, Handle comm, void* request) = nullptr;
  int (*irecv)(void* data, int count, Handle type, int rank, int tag, Handle comm, void* request) = nullptr;
  int (*waitall)(int count, void* requests, void* statuses) = nullptr;
  int (*info_create)(Handle* info) = nullptr;
  int (*info_set)(Handle info, const char* key, const char* value) = nullptr;
  int (*info_free)(Handle* info) = nullptr;
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

  std::size_t request_bytes = sizeof(Handle);  ///< What one takes in an array of requests.
  std::string version;                         ///< "MPICH 5.0.2", "Open MPI v5.0.11", "brant MPI"
};

/// No MPI's status is larger.
struct StatusRoom {
  alignas(std::max_align_t) std::byte words[48];
};

/// An MPI that measures: a rival, or brant's own.
struct Choice {
  std::string library;
  std::string peer;  ///< As rows name a rival; empty: brant's own.
};

/// Loads `file` for good; once in a process. Throws Error: not_found; version_mismatch for a library that lacks one of
/// the functions above.
Library load(const std::string& file);
/// The file of brant's own MPI, which lies where this program was built or installed. Throws Error (not_found), which
/// says where it was looked for and the cure.
std::string own_library();

/// Throws Error where a function of MPI did not return success.
void require(int outcome, const char* function);

}  // namespace brant::bench::mpi
