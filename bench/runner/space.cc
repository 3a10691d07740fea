#include "bench/runner/space.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "bench/runner/driver_memory.h"
#include "core/engine.h"

namespace brant::bench {
namespace {

/// A framework's allocator asks for large blocks and gives out slices of them: neither the beginning of a message nor
/// its end is that of an allocation, nor of a page.
constexpr std::size_t kBlockBytesMin = std::size_t{32} << 20;
constexpr std::size_t kSliceOffset = (std::size_t{1} << 20) + 8'001;

std::shared_ptr<void> from_heap(std::size_t bytes) {
  std::shared_ptr<void> block(std::malloc(bytes), std::free);
  if (block == nullptr) throw Error(Status::no_memory, fmt::format("malloc gave no {} bytes", bytes));
  return block;
}

std::shared_ptr<void> from_elsewhere(Runtime& runtime, MemoryKind kind, std::size_t bytes) {
  if (kind == MemoryKind::host) return from_heap(bytes);
  return driver_memory(runtime.worker().engine().device().capabilities().ordinal, bytes);
}

}  // namespace

Space Space::make(Runtime& runtime, MemoryKind kind, std::size_t bytes, Alloc alloc) {
  Space space;
  if (alloc == Alloc::library) {
    space.own_ = runtime.allocate(kind, bytes);
    space.whole_ = space.own_;
  } else {
    const std::size_t offset = alloc == Alloc::torch_like ? kSliceOffset : 0;
    const std::size_t block = alloc == Alloc::torch_like ? std::max(kBlockBytesMin, offset + bytes) : bytes;
    space.foreign_ = from_elsewhere(runtime, kind, block);
    space.whole_ = Buffer(static_cast<std::byte*>(space.foreign_.get()) + offset, bytes, kind);
  }
  const std::vector<std::byte> zeros(bytes);
  runtime.copy(space.whole_, ConstBuffer(zeros.data(), bytes, MemoryKind::host));
  return space;
}

}  // namespace brant::bench
