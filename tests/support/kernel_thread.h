#pragma once

#include "brant/base/simt.h"
#include "port/memory/emulated/emulated_memory.h"

namespace brant::test {

/// A thread of a kernel whose memory is ordinary memory of this process.
inline simt::CpuThread thread_of_host() {
  return simt::CpuThread([](void* pointer) noexcept { return pointer; });
}

/// One that reaches memory of the emulated device as its kernels do; it may have a stack and a heap of the CPU.
inline simt::CpuThread thread_of_emulated() {
  return simt::CpuThread([](void* pointer) noexcept {
    auto& memory = port::memory::EmulatedMemory::of_process();
    const auto known = memory.query(pointer);
    return known && known->kind == MemoryKind::emulated ? memory.engine_address(pointer) : pointer;
  });
}

}  // namespace brant::test
