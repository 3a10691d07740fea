#include "port/memory/cuda/pointer_cache.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace brant::port::memory {
namespace {

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

PointerInfo allocation(std::uint64_t id, std::uintptr_t base, std::size_t bytes) {
  return {.kind = MemoryKind::cuda, .device = 0, .base = at(base), .bytes = bytes, .buffer_id = id};
}

TEST(PointerCache, knows_an_allocation_by_id_and_range) {
  PointerCache cache;
  cache.insert(allocation(7, 0x1000, 0x100));
  EXPECT_EQ(cache.find(7, at(0x1000))->base, at(0x1000));
  EXPECT_EQ(cache.find(7, at(0x10ff))->bytes, 0x100u);
  EXPECT_EQ(cache.find(7, at(0x1100)).status(), Status::not_found);
  EXPECT_EQ(cache.find(7, at(0xfff)).status(), Status::not_found);
  EXPECT_EQ(cache.find(8, at(0x1000)).status(), Status::not_found);
}

TEST(PointerCache, an_address_that_was_freed_and_given_again_is_not_mistaken) {
  PointerCache cache;
  cache.insert(allocation(7, 0x1000, 0x100));
  EXPECT_EQ(cache.find(8, at(0x1000)).status(), Status::not_found);
  cache.insert(allocation(8, 0x1000, 0x40));
  EXPECT_EQ(cache.find(8, at(0x1000))->bytes, 0x40u);
}

TEST(PointerCache, does_not_remember_what_has_no_id) {
  PointerCache cache;
  cache.insert(allocation(0, 0x1000, 0x100));
  cache.insert(allocation(5, 0x1000, 0));
  EXPECT_EQ(cache.size(), 0u);
}

TEST(PointerCache, stays_within_its_bound) {
  PointerCache cache(16);
  for (std::uint64_t id = 1; id <= 1000; ++id) {
    cache.insert(allocation(id, id * 0x1000, 0x100));
    EXPECT_LE(cache.size(), 16u);
    EXPECT_TRUE(cache.find(id, at(id * 0x1000)).ok());
  }
}

TEST(PointerCache, serves_several_threads) {
  PointerCache cache(64);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      for (std::uint64_t i = 0; i < 2000; ++i) {
        const std::uint64_t id = 1 + (i * 7 + seed) % 100;
        cache.insert(allocation(id, id * 0x1000, 0x100));
        const Result<PointerInfo> found = cache.find(id, at(id * 0x1000 + 5));
        if (found.ok() && found->buffer_id != id) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace brant::port::memory
