#include "bench/runner/space.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
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

}  // namespace

std::shared_ptr<void> heap_memory(std::size_t bytes) {
  std::shared_ptr<void> block(std::malloc(bytes), std::free);
  if (block == nullptr) throw Error(Status::no_memory, fmt::format("malloc gave no {} bytes", bytes));
  return block;
}

std::shared_ptr<void> foreign_memory(Alloc alloc, std::size_t bytes,
                                     const std::function<std::shared_ptr<void>(std::size_t)>& elsewhere) {
  if (alloc != Alloc::torch_like) return elsewhere(bytes);
  std::shared_ptr<void> block = elsewhere(std::max(kBlockBytesMin, kSliceOffset + bytes));
  void* const slice = static_cast<std::byte*>(block.get()) + kSliceOffset;
  return {std::move(block), slice};
}

Space Space::make(Runtime& runtime, MemoryKind kind, std::size_t bytes, Alloc alloc) {
  Space space;
  if (alloc == Alloc::library) {
    space.own_ = runtime.allocate(kind, bytes);
    space.whole_ = space.own_;
  } else {
    space.foreign_ = foreign_memory(alloc, bytes, [&](std::size_t block) {
      if (kind == MemoryKind::host) return heap_memory(block);
      return driver_memory(runtime.worker().engine().device().capabilities().ordinal, block);
    });
    space.whole_ = Buffer(space.foreign_.get(), bytes, kind);
  }
  const std::vector<std::byte> zeros(bytes);
  runtime.copy(space.whole_, ConstBuffer(zeros.data(), bytes, MemoryKind::host));
  return space;
}

}  // namespace brant::bench
