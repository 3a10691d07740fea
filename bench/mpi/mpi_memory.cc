#include "bench/mpi/mpi_memory.h"

#include <cstring>
#include <exception>
#include <string>

#include "bench/runner/space.h"

namespace brant::bench::mpi {
namespace {

std::shared_ptr<void> window_memory(const Library& mpi, MemoryKind kind, std::size_t bytes) {
  Handle info = mpi.no_info, window = nullptr;
  if (kind != MemoryKind::host) {
    require(mpi.info_create(&info), "MPI_Info_create");
    require(mpi.info_set(info, "brant_memory", std::string(memory_kind_name(kind)).c_str()), "MPI_Info_set");
  }
  void* base = nullptr;
  require(mpi.win_allocate(static_cast<std::ptrdiff_t>(bytes), 1, info, mpi.world, &base, &window), "MPI_Win_allocate");
  if (kind != MemoryKind::host) require(mpi.info_free(&info), "MPI_Info_free");
  const auto free = [&mpi, window](void*) mutable {
    if (std::uncaught_exceptions() == 0) static_cast<void>(mpi.win_free(&window));  // which waits for all
  };
  return {base, free};
}

}  // namespace

MpiMemory::MpiMemory(const Library& mpi, MemoryKind kind, Alloc alloc, std::size_t bytes)
    : block_(alloc == Alloc::library ? window_memory(mpi, kind, bytes) : foreign_memory(alloc, bytes, &heap_memory)) {
  if (host_accessible(kind)) std::memset(block_.get(), 0, bytes);
}

}  // namespace brant::bench::mpi
