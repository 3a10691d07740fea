#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "brant/core/runtime.h"

/// Memory of all the ways in which it is made, for tests that move bytes from any into any.
namespace brant::test {

inline std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>((i * 31 + seed * 17 + (i >> 8)) & 0xff);
  return data;
}

/// How the memory of a side is made.
struct Ground {
  MemoryKind kind;
  bool of_heap;
  const char* name;
};
inline constexpr Ground kGrounds[] = {{MemoryKind::host, false, "host"},
                                      {MemoryKind::host, true, "heap"},
                                      {MemoryKind::pinned, false, "pinned"},
                                      {MemoryKind::emulated, false, "emulated"}};

/// Memory of a rank: of its runtime, or of the heap, which nobody can map.
class Space {
 public:
  Space(Runtime& runtime, MemoryKind kind, std::size_t bytes, bool of_heap = false) : runtime_(runtime), bytes_(bytes) {
    if (of_heap) {
      heap_.resize(bytes + 1);
      whole_ = Buffer(heap_.data(), bytes, kind);
    } else {
      memory_ = runtime.allocate(kind, bytes + 1);
      whole_ = memory_.part(0, bytes);
    }
  }
  /// The first `most` bytes of it.
  void fill(const std::vector<std::byte>& image, std::size_t most = SIZE_MAX) {
    const std::size_t bytes = std::min(most, bytes_);
    runtime_.copy(part(0, bytes), ConstBuffer(image.data(), bytes, MemoryKind::host));
  }
  [[nodiscard]] std::vector<std::byte> image(std::size_t most = SIZE_MAX) const {
    std::vector<std::byte> image(std::min(most, bytes_));
    runtime_.copy(Buffer(image.data(), image.size(), MemoryKind::host), part(0, image.size()));
    return image;
  }
  [[nodiscard]] Buffer whole() const { return whole_; }
  [[nodiscard]] Buffer part(std::size_t offset, std::size_t bytes) const {
    return {static_cast<std::byte*>(whole_.data) + offset, bytes, whole_.kind};
  }

 private:
  Runtime& runtime_;
  std::size_t bytes_;
  Memory memory_;
  std::vector<std::byte> heap_;
  Buffer whole_;
};

}  // namespace brant::test
