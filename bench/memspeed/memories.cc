#include "bench/memspeed/memories.h"

#include <fmt/format.h>

namespace brant::bench {
namespace {

OwnMemory make_memory(Runtime& runtime, MemoryKind kind, std::size_t bytes, Alloc alloc, bool twice) {
  OwnMemory memory;
  memory.kind = kind;
  memory.space = Space::make(runtime, kind, bytes, alloc);
  if (twice) memory.other = Space::make(runtime, kind, bytes, alloc);
  return memory;
}

}  // namespace

OwnMemories make_memories(Runtime& runtime, std::size_t bytes, Alloc host, bool twice) {
  OwnMemories memories;
  memories.all.push_back(make_memory(runtime, MemoryKind::host, bytes, host, twice));
  try {
    memories.all.push_back(make_memory(runtime, MemoryKind::pinned, bytes, Alloc::library, twice));
  } catch (const Error& fault) {
    if (fault.status() != Status::not_supported) throw;
    memories.missing.push_back(fmt::format("pinned memory: {}", fault.what()));
  }
  if (runtime.device_kind() != MemoryKind::host) {
    memories.all.push_back(make_memory(runtime, runtime.device_kind(), bytes, Alloc::library, twice));
  } else {
    memories.missing.emplace_back("device memory: no device (--device emulated makes one of threads)");
  }
  return memories;
}

}  // namespace brant::bench
