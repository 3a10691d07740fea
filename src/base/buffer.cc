#include "brant/base/buffer.h"

#include <array>

namespace brant {
namespace {

constexpr std::array<std::string_view, kMemoryKindCount> kNames = {"detect", "host",         "pinned",
                                                                   "cuda",   "cuda-managed", "emulated"};

}  // namespace

std::string_view memory_kind_name(MemoryKind kind) noexcept {
  const auto index = static_cast<std::size_t>(kind);
  return index < kNames.size() ? kNames[index] : "unknown";
}

bool memory_kind_from_name(std::string_view name, MemoryKind& kind) noexcept {
  for (std::size_t index = 0; index < kNames.size(); ++index) {
    if (kNames[index] != name) continue;
    kind = static_cast<MemoryKind>(index);
    return true;
  }
  return false;
}

}  // namespace brant
