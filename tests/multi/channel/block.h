#pragma once

#include <cstddef>
#include <vector>

#include "brant/core/runtime.h"
#include "support/job_runtime.h"

namespace brant::test {

inline std::byte expected(std::size_t index, unsigned seed) {
  return static_cast<std::byte>((index * 131 + (index >> 9) * 7 + seed * 29) & 0xff);
}

/// A buffer of a kind, filled and compared through host memory.
class Block {
 public:
  Block(MemoryKind kind, std::size_t bytes) : memory_(job().allocate(kind, bytes + 1)), bytes_(bytes), host_(bytes) {}

  void fill(unsigned seed) {
    for (std::size_t i = 0; i < bytes_; ++i) host_[i] = expected(i, seed);
    job().copy(view(), ConstBuffer(host_.data(), bytes_, MemoryKind::host));
  }
  [[nodiscard]] bool holds(unsigned seed, std::size_t bytes) {
    job().copy(Buffer(host_.data(), bytes_, MemoryKind::host), view());
    for (std::size_t i = 0; i < bytes; ++i) {
      if (host_[i] != expected(i, seed)) return false;
    }
    return true;
  }
  [[nodiscard]] Buffer view() const { return memory_.part(0, bytes_); }

 private:
  Memory memory_;
  std::size_t bytes_;
  std::vector<std::byte> host_;
};

}  // namespace brant::test
