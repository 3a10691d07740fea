#include "ops/lane/landing_pool.h"

#include <gtest/gtest.h>

#include "core/engine.h"
#include "support/in_process_job.h"

namespace brant::lane {
namespace {

class LandingPoolTest : public ::testing::Test {
 protected:
  LandingBlock* take(MemoryKind kind, std::size_t bytes) {
    const Result<LandingBlock*> block = pool_.take(kind, bytes);
    EXPECT_TRUE(block);
    return block ? *block : nullptr;
  }

  test::InProcessJob job_{test::ranks(1, GpuChoice::emulated)};
  LandingPool pool_{job_.rank(0).worker().engine()};
};

TEST_F(LandingPoolTest, gives_the_same_memory_again) {
  LandingBlock* first = take(MemoryKind::host, 1000);
  void* const memory = first->data;
  EXPECT_EQ(pool_.lent(), 1u);
  LandingPool::drop(*first);
  EXPECT_EQ(pool_.lent(), 0u);
  LandingBlock* second = take(MemoryKind::host, 970);
  EXPECT_EQ(second->data, memory);
  EXPECT_EQ(pool_.allocations(), 1u);
  LandingPool::drop(*second);
}

TEST_F(LandingPoolTest, keeps_memory_until_its_last_owner_drops_it) {
  LandingBlock* shared = take(MemoryKind::host, 1);
  ++shared->owners;
  LandingPool::drop(*shared);
  EXPECT_EQ(pool_.lent(), 1u);
  LandingBlock* other = take(MemoryKind::host, 1);
  EXPECT_NE(other->data, shared->data);
  LandingPool::drop(*shared);
  LandingPool::drop(*other);
  EXPECT_EQ(pool_.lent(), 0u);
}

TEST_F(LandingPoolTest, wastes_an_eighth_at_most) {
  for (std::size_t bytes = 256; bytes < 100'000; bytes += 77) {
    LandingBlock* block = take(MemoryKind::host, bytes);
    EXPECT_GE(block->capacity, bytes);
    EXPECT_LE(block->capacity, bytes + bytes / 8);
    LandingPool::drop(*block);
  }
}

TEST_F(LandingPoolTest, keeps_kinds_apart) {
  LandingBlock* host = take(MemoryKind::host, 4096);
  LandingPool::drop(*host);
  LandingBlock* device = take(MemoryKind::emulated, 4096);
  EXPECT_EQ(device->kind, MemoryKind::emulated);
  EXPECT_EQ(pool_.allocations(), 2u);
  LandingPool::drop(*device);
}

TEST_F(LandingPoolTest, lands_device_data_on_the_device_unless_the_CPU_must_read_it) {
  EXPECT_EQ(pool_.landing_kind(MemoryKind::cuda, false), MemoryKind::emulated);
  EXPECT_EQ(pool_.landing_kind(MemoryKind::emulated, false), MemoryKind::emulated);
  EXPECT_EQ(pool_.landing_kind(MemoryKind::emulated, true), MemoryKind::host);
  EXPECT_EQ(pool_.landing_kind(MemoryKind::host, false), MemoryKind::host);
}

TEST_F(LandingPoolTest, says_so_when_a_kind_is_not_to_be_had) {
  const Result<LandingBlock*> none = pool_.take(MemoryKind::cuda, 64);
  EXPECT_FALSE(none);
  EXPECT_EQ(pool_.lent(), 0u);
}

}  // namespace
}  // namespace brant::lane
