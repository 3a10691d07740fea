#pragma once

#include <cstring>

#include "port/memory/emulated/emulated_memory.h"
#include "port/wire/loopback/loopback.h"

namespace brant::test {

/// A network within this process that takes the memory of emulated devices at both ends, also of puts and gets.
inline port::LoopbackOptions network_of_emulated_devices() {
  port::LoopbackOptions network;
  network.extra_kinds = 1u << static_cast<unsigned>(MemoryKind::emulated);
  network.copy = [](void*, Buffer to, ConstBuffer from) noexcept {
    const auto& memory = port::memory::EmulatedMemory::of_process();
    const auto write = memory.place(to.data, from.bytes), read = memory.place(from.data, from.bytes);
    if (!write || !read) return false;
    std::memmove(write->address, read->address, from.bytes);
    return true;
  };
  return network;
}

}  // namespace brant::test
