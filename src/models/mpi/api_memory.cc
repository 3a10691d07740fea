#include <cstring>

#include "models/mpi/calls.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

int alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr) noexcept {
  return call("MPI_Alloc_mem", [&] {
    require(size >= 0, MPI_ERR_ARG, "the size {} is negative", size);
    require_place(baseptr, "baseptr");
    const MemoryKind kind = kind_of_hint(memory_hint(info));
    void* const memory = process()->allocated().allocate(kind, static_cast<std::size_t>(size));
    if (checks() != nullptr) [[unlikely]]
      checks()->memory.add(memory, static_cast<std::size_t>(size));
    std::memcpy(baseptr, static_cast<const void*>(&memory), sizeof memory);
  });
}

int free_mem(void* base) noexcept {
  return call("MPI_Free_mem", [&] {
    if (checks() != nullptr) [[unlikely]]
      checks()->memory.remove(current_rank(), base);
    process()->allocated().free(base);
  });
}

}  // namespace brant::mpi::api
