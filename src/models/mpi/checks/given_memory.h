#pragma once

#include <cstddef>
#include <unordered_map>

namespace brant::mpi {

class RankState;

/// Memory that MPI has given out, so that none of it goes while an operation uses it.
class GivenMemory {
 public:
  /// Of MPI_Alloc_mem.
  void add(const void* base, std::size_t bytes) noexcept { blocks_[base] = bytes; }
  /// Before MPI_Free_mem. Throws MPI_ERR_BASE: it is in use.
  void remove(const RankState& rank, const void* base);

  /// Before so many bytes of `what` go. Throws this class of error where a request of the rank uses some of them that
  /// the program has not waited for.
  static void require_unused(const RankState& rank, const void* base, std::size_t bytes, const char* what,
                             int error_class);

 private:
  std::unordered_map<const void*, std::size_t> blocks_;
};

}  // namespace brant::mpi
