#include "bench/runner/images.h"

#include "bench/runner/pattern.h"

namespace brant::bench {

void Images::fill(Buffer memory, std::uint64_t message) {
  image_.resize(memory.bytes);
  fill_pattern(image_, message);
  runtime_.copy(memory, ConstBuffer(image_.data(), image_.size(), MemoryKind::host));
}

void Images::poison(Buffer memory, std::uint64_t message) {
  image_.resize(memory.bytes);
  fill_poison(image_, message);
  runtime_.copy(memory, ConstBuffer(image_.data(), image_.size(), MemoryKind::host));
}

std::optional<std::size_t> Images::first_wrong(Buffer memory, std::uint64_t message) {
  image_.resize(memory.bytes);
  runtime_.copy(Buffer(image_.data(), image_.size(), MemoryKind::host), memory);
  return first_wrong_byte(image_, message);
}

}  // namespace brant::bench
