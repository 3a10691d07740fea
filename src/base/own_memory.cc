#include "base/own_memory.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace brant {

namespace {

/// What of the addresses does not change: where the heap begins, and how far down the stack may grow at least.
struct Bounds {
  std::uintptr_t heap = 0;
  std::uintptr_t stack_bottom = 0;
  std::uintptr_t stack_top = 0;
};

/// The kernel leaves 128 MiB below the top of the stack to it, whatever its limit is.
constexpr std::uintptr_t kStackBytes = std::uintptr_t{8} << 20;

Bounds read_bounds() noexcept {
  Bounds bounds;
  bounds.heap = reinterpret_cast<std::uintptr_t>(::sbrk(0));  // as long as nothing is found
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return bounds;
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    char* behind = nullptr;
    const std::uintptr_t begin = std::strtoull(line, &behind, 16);
    if (*behind != '-') continue;
    const std::uintptr_t end = std::strtoull(behind + 1, nullptr, 16);
    if (std::strstr(line, "[heap]") != nullptr && begin < bounds.heap) bounds.heap = begin;
    if (std::strstr(line, "[stack]") == nullptr) continue;
    bounds.stack_top = end;
    bounds.stack_bottom = end - kStackBytes;
  }
  std::fclose(maps);
  return bounds;
}

}  // namespace

bool is_own_memory(const void* address) noexcept {
  static const Bounds bounds = read_bounds();
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (at >= bounds.stack_bottom && at < bounds.stack_top) return true;
  return at >= bounds.heap && at < reinterpret_cast<std::uintptr_t>(::sbrk(0));
}

}  // namespace brant
