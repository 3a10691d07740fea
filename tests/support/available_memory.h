#pragma once

#include <cstddef>
#include <fstream>
#include <limits>
#include <string>

namespace brant::test {

/// Bytes that programs may still take on this machine, as the kernel estimates it.
inline std::size_t available_memory() {
  std::ifstream info("/proc/meminfo");
  for (std::string name; info >> name;) {
    std::size_t kilobytes = 0;
    if (name == "MemAvailable:" && info >> kilobytes) return kilobytes << 10;
    info.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

}  // namespace brant::test
