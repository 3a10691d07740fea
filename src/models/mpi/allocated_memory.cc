#include "models/mpi/allocated_memory.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "models/mpi/calls.h"

namespace brant::mpi {

namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

std::string memory_hint(MPI_Info info) {
  const Info::Entry* const entry = info != MPI_INFO_NULL ? info_of(info).find("brant_memory") : nullptr;
  return entry != nullptr ? entry->second : "host";
}

MemoryKind kind_of_hint(const std::string& hint) {
  MemoryKind kind = MemoryKind::host;
  require(memory_kind_from_name(hint, kind) && kind != MemoryKind::detect, MPI_ERR_INFO_VALUE,
          "the hint brant_memory is '{}', which is no kind of memory: use host, pinned, cuda, cuda-managed or emulated",
          hint);
  return kind;
}

void* AllocatedMemory::allocate(MemoryKind kind, std::size_t bytes) {
  if (kind == MemoryKind::host && bytes < kMappedMin) {
    const std::size_t room = std::max((bytes + kAlignment - 1) / kAlignment, std::size_t{1}) * kAlignment;
    void* memory = std::aligned_alloc(kAlignment, room);
    require(memory != nullptr, MPI_ERR_NO_MEM, "there are no {} bytes of memory", bytes);
    return memory;
  }
  Memory memory = runtime_.allocate(kind, std::max(bytes, std::size_t{1}));
  void* const base = memory.data();
  blocks_.emplace(base, std::move(memory));
  return base;
}

void AllocatedMemory::free(void* base) noexcept {
  if (blocks_.erase(base) == 0) std::free(base);
}

}  // namespace brant::mpi
