#include "port/memory/allocation_map.h"

#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace brant::port::memory {
namespace {

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

PointerInfo range(std::uintptr_t base, std::size_t bytes) {
  return {.kind = MemoryKind::pinned, .device = -1, .base = at(base), .bytes = bytes, .buffer_id = next_buffer_id()};
}

TEST(AllocationMap, finds_every_byte_of_a_range_and_none_beside_it) {
  AllocationMap map;
  ASSERT_EQ(map.insert(range(1000, 50)), Status::ok);
  ASSERT_EQ(map.insert(range(1050, 10)), Status::ok);
  EXPECT_EQ(map.find(at(999)).status(), Status::not_found);
  EXPECT_EQ(map.find(at(1000))->base, at(1000));
  EXPECT_EQ(map.find(at(1049))->base, at(1000));
  EXPECT_EQ(map.find(at(1050))->base, at(1050));
  EXPECT_EQ(map.find(at(1060)).status(), Status::not_found);
  EXPECT_EQ(map.find(nullptr).status(), Status::not_found);
}

TEST(AllocationMap, finds_what_is_inserted_where_it_found_nothing_before) {
  AllocationMap map;
  ASSERT_EQ(map.insert(range(1000, 50)), Status::ok);
  ASSERT_EQ(map.insert(range(2000, 50)), Status::ok);
  for (int look = 0; look < 2; ++look) {
    EXPECT_EQ(map.find(at(1500)).status(), Status::not_found);
    EXPECT_EQ(map.find(at(3000)).status(), Status::not_found);
  }
  ASSERT_EQ(map.insert(range(1490, 20)), Status::ok);
  EXPECT_EQ(map.find(at(1500))->base, at(1490));
  EXPECT_EQ(map.find(at(3000)).status(), Status::not_found);
}

TEST(AllocationMap, says_what_lies_around_an_address_until_something_changes) {
  AllocationMap map;
  ASSERT_EQ(map.insert(range(1000, 50)), Status::ok);
  ASSERT_EQ(map.insert(range(2000, 50)), Status::ok);
  const AllocationMap::Range inside = map.around(at(1010));
  EXPECT_TRUE(inside.known);
  EXPECT_TRUE(inside.covers(at(1000), 50));
  EXPECT_FALSE(inside.covers(at(1000), 51));
  EXPECT_FALSE(inside.covers(at(999), 1));
  const AllocationMap::Range gap = map.around(at(1500));
  EXPECT_FALSE(gap.known);
  EXPECT_TRUE(gap.covers(at(1050), 950));
  EXPECT_FALSE(gap.covers(at(1050), 951));
  EXPECT_EQ(gap.version, map.version());
  ASSERT_EQ(map.insert(range(1490, 20)), Status::ok);
  EXPECT_NE(gap.version, map.version());
  EXPECT_FALSE(map.around(at(1480)).covers(at(1480), 20));
}

TEST(AllocationMap, refuses_ranges_that_overlap_or_are_none) {
  AllocationMap map;
  ASSERT_EQ(map.insert(range(1000, 100)), Status::ok);
  for (const auto& [base, bytes] : std::vector<std::pair<std::uintptr_t, std::size_t>>{{1000, 100},
                                                                                       {1050, 10},
                                                                                       {900, 101},
                                                                                       {1099, 1},
                                                                                       {900, 1000},
                                                                                       {0, 10},
                                                                                       {2000, 0},
                                                                                       {~std::uintptr_t{0} - 5, 10}}) {
    EXPECT_EQ(map.insert(range(base, bytes)), Status::invalid_argument) << base << " " << bytes;
  }
  EXPECT_EQ(map.insert(range(900, 100)), Status::ok);
  EXPECT_EQ(map.insert(range(1100, 1)), Status::ok);
}

TEST(AllocationMap, more_allocations_than_are_remembered_are_found_in_turn) {
  AllocationMap map, other;
  for (std::uintptr_t i = 1; i <= 40; ++i) ASSERT_EQ(map.insert(range(i * 1000, 100)), Status::ok);
  ASSERT_EQ(other.insert(range(1000, 5000)), Status::ok);
  for (int round = 0; round < 3; ++round) {
    for (std::uintptr_t i = 1; i <= 40; ++i) {
      EXPECT_EQ(map.find(at(i * 1000 + 50))->base, at(i * 1000));
      EXPECT_TRUE(map.around(at(i * 1000 + 50)).covers(at(i * 1000), 100));
      EXPECT_EQ(map.find(at(i * 1000 + 100)).status(), Status::not_found);
      EXPECT_FALSE(map.around(at(i * 1000 + 100)).covers(at(i * 1000), 100));
      EXPECT_EQ(other.find(at(1500))->bytes, 5000u) << "each map has its own";
    }
  }
  ASSERT_TRUE(map.remove(at(40'000)).ok());
  EXPECT_EQ(map.find(at(40'050)).status(), Status::not_found);
}

TEST(AllocationMap, removes_only_at_the_base) {
  AllocationMap map;
  ASSERT_EQ(map.insert(range(1000, 100)), Status::ok);
  EXPECT_EQ(map.remove(at(1001)).status(), Status::invalid_argument);
  EXPECT_EQ(map.remove(at(1100)).status(), Status::not_found);
  EXPECT_EQ(map.remove(at(1000))->bytes, 100u);
  EXPECT_EQ(map.remove(at(1000)).status(), Status::not_found);
  EXPECT_EQ(map.find(at(1050)).status(), Status::not_found);
}

TEST(AllocationMap, take_all_leaves_nothing) {
  AllocationMap map;
  for (std::uintptr_t i = 1; i <= 10; ++i) ASSERT_EQ(map.insert(range(i * 100, 10)), Status::ok);
  EXPECT_EQ(map.all().size(), 10u);
  EXPECT_EQ(map.take_all().size(), 10u);
  EXPECT_TRUE(map.all().empty());
}

TEST(AllocationMap, ids_are_never_given_twice_by_any_thread) {
  std::vector<std::vector<std::uint64_t>> drawn(4);
  std::vector<std::thread> threads;
  for (auto& mine : drawn) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < 1000; ++i) mine.push_back(next_buffer_id());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::uint64_t> all;
  for (const auto& mine : drawn) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 4000u);
  EXPECT_FALSE(all.contains(0));
}

}  // namespace
}  // namespace brant::port::memory
