// No memory for what is mapped. This program refuses memory by itself, so it stands alone.
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "unit/mapping/mapping_pair.h"

namespace {
int g_allowed = -1;  // allocations until all are refused; negative: all are allowed
unsigned g_refusals = 0;

bool refused() {
  if (g_allowed < 0) return false;
  if (g_allowed > 0) return --g_allowed < 0;
  ++g_refusals;
  return true;
}
}  // namespace

// Not inlined: the compiler would see one of a pair, and take it for a mistake.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* memory = refused() ? nullptr : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return refused() ? nullptr : std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace brant {
namespace {

/// With so much memory, and none after that.
template <typename Body>
auto with_memory(int allocations, Body&& body) {
  g_allowed = allocations;
  auto result = body();
  g_allowed = -1;
  return result;
}

TEST(MappingMemory, that_is_short_at_any_point_loses_no_more_than_a_mapping) {
  unsigned mapped = 0;
  for (int allowed = 0; allowed < 40; ++allowed) {
    SCOPED_TRACE(allowed);
    test::MappingPair pair(GpuChoice::none);
    const Memory memory = pair.job().rank(1).allocate(MemoryKind::host, 1 << 16);
    Exports& exports = pair.exports();
    MappingTable::of(pair.engine(0));
    const Result<ExportedPlace> place = with_memory(allowed, [&] { return exports.describe(memory.data()); });
    if (place) {
      with_memory(allowed, [&] {
        pair.job().run(4);
        return true;
      });
      const MappedMemory there = pair.imports().take(place->buffer_id, 0, 1, Reach::cpu);
      if (there.address != nullptr) ++mapped;
    }
    // Whatever was lost: the next allocation is told of and mapped.
    const Memory other = pair.job().rank(1).allocate(MemoryKind::host, 1 << 16);
    const ExportedPlace next = pair.describe(other);
    EXPECT_NE(pair.imports().take(next.buffer_id, 0, 1, Reach::cpu).address, nullptr);
  }
  EXPECT_GT(g_refusals, 0u);
  EXPECT_GT(mapped, 0u);
}

}  // namespace
}  // namespace brant
