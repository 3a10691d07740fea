#include "base/own_memory.h"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "support/effort.h"

namespace brant {
namespace {

TEST(OwnMemory, has_the_stack_and_what_malloc_takes_from_the_heap) {
  int on_stack = 0;
  EXPECT_TRUE(is_own_memory(&on_stack));
  if (test::kSanitized) return;  // its allocator takes nothing from there
  const auto small = std::make_unique<int>(1);
  EXPECT_TRUE(is_own_memory(small.get()));
}

TEST(OwnMemory, has_nothing_that_was_mapped) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  void* const mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_FALSE(is_own_memory(mapped));
  EXPECT_FALSE(is_own_memory(static_cast<std::byte*>(mapped) + kBytes - 1));
  ::munmap(mapped, kBytes);
  EXPECT_FALSE(is_own_memory(nullptr));
  EXPECT_FALSE(is_own_memory(reinterpret_cast<const void*>(~std::uintptr_t{0})));
}

TEST(OwnMemory, grows_with_the_heap) {
  if (test::kSanitized) return;
  std::vector<std::unique_ptr<std::byte[]>> parts;
  for (int i = 0; i < 200; ++i) parts.push_back(std::make_unique<std::byte[]>(10'000));
  for (const auto& part : parts) EXPECT_TRUE(is_own_memory(part.get()));
}

}  // namespace
}  // namespace brant
