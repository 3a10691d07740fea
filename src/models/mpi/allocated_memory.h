#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "brant/core/runtime.h"
#include "brant/mpi/mpi.h"

namespace brant::mpi {

/// Smaller allocations of the runtime cannot be mapped by others.
inline constexpr std::size_t kMappedMin = std::size_t{16} * 1024;

/// brant's own hint, which names a kind of memory; "host" where there is none. Throws MPI_ERR_INFO.
[[nodiscard]] std::string memory_hint(MPI_Info info);
/// Throws MPI_ERR_INFO_VALUE.
[[nodiscard]] MemoryKind kind_of_hint(const std::string& hint);

/// What MPI_Alloc_mem gave to the ranks of this process: memory of the runtime, so that other processes map it and
/// messages from and to it are copied once. Small blocks of the host's are malloc's, since nobody maps them.
class AllocatedMemory {
 public:
  explicit AllocatedMemory(Runtime& runtime) noexcept : runtime_(runtime) {}
  AllocatedMemory(const AllocatedMemory&) = delete;
  AllocatedMemory& operator=(const AllocatedMemory&) = delete;

  /// Never null. Throws MPI_ERR_NO_MEM, Error, std::bad_alloc.
  [[nodiscard]] void* allocate(MemoryKind kind, std::size_t bytes);
  void free(void* base) noexcept;

 private:
  Runtime& runtime_;
  std::unordered_map<void*, Memory> blocks_;
};

}  // namespace brant::mpi
