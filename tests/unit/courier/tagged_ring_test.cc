// An order is there when all of its words are, whichever came first.
#include "ops/courier/tagged_ring.h"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "ops/courier/host_machine.h"
#include "ops/courier/order.h"

namespace brant::test {
namespace {

using courier::HostMachine;
using courier::OrderRing;

void* anywhere(void* pointer) noexcept { return pointer; }

class TaggedRingTest : public testing::Test {
 protected:
  OrderRing::Entry entry(std::uint64_t seed) {
    OrderRing::Entry made;
    for (unsigned i = 0; i < OrderRing::kWords; ++i) made.words[i] = seed * 10 + i;
    return made;
  }
  unsigned take(std::uint64_t next, unsigned most = 16) { return take_entries(machine_, ring_, next, most, desk_); }

  std::uint64_t fault_ = 0;
  HostMachine machine_{&anywhere, &fault_};
  OrderRing ring_{};
  OrderRing::Entry desk_[16]{};
};

TEST_F(TaggedRingTest, zeroed_memory_is_empty) { EXPECT_EQ(take(OrderRing::kFirst), 0u); }

TEST_F(TaggedRingTest, takes_what_is_there_in_order) {
  for (unsigned i = 0; i < 5; ++i) put_entry(machine_, ring_, OrderRing::kFirst + i, entry(i));
  EXPECT_EQ(take(OrderRing::kFirst, 3), 3u);
  EXPECT_EQ(take(OrderRing::kFirst), 5u);
  for (unsigned i = 0; i < 5; ++i) EXPECT_TRUE(std::equal(desk_[i].words, desk_[i].words + 4, entry(i).words));
}

TEST_F(TaggedRingTest, a_hole_ends_what_is_taken) {
  put_entry(machine_, ring_, OrderRing::kFirst, entry(0));
  put_entry(machine_, ring_, OrderRing::kFirst + 2, entry(2));
  EXPECT_EQ(take(OrderRing::kFirst), 1u);
}

TEST_F(TaggedRingTest, half_an_entry_is_none_whichever_half) {
  std::array<unsigned, 4> order{0, 1, 2, 3};
  do {
    for (const std::uint64_t lap : {1u, 2u, 255u, 256u, 257u}) {
      const std::uint64_t number = lap * OrderRing::kSlots + 9;
      put_entry(machine_, ring_, number - OrderRing::kSlots, entry(1));
      OrderRing whole{};
      put_entry(machine_, whole, number, entry(2));
      for (unsigned i = 0; i < 4; ++i) {
        EXPECT_EQ(take(number, 1), 0u) << "lap " << lap << ", " << i << " words written";
        ring_.words[9][order[i]] = whole.words[9][order[i]];
      }
      EXPECT_EQ(take(number, 1), 1u);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(TaggedRingTest, an_order_comes_back_as_it_was) {
  CourierOrder order;
  order.to = reinterpret_cast<void*>(0x00fedcba98765432);
  order.from = reinterpret_cast<void*>(0x0000123456789abc);
  order.bytes = 0xfedcba;
  order.value = 0xffffffff;
  order.flag = reinterpret_cast<std::uint64_t*>(0x00007fffffffffe8);
  ASSERT_TRUE(courier::writable(order));
  put_entry(machine_, ring_, OrderRing::kFirst, courier::entry_of(order));
  ASSERT_EQ(take(OrderRing::kFirst), 1u);
  const CourierOrder seen = courier::order_of(desk_[0]);
  EXPECT_EQ(seen.to, order.to);
  EXPECT_EQ(seen.from, order.from);
  EXPECT_EQ(seen.bytes, order.bytes);
  EXPECT_EQ(seen.value, order.value);
  EXPECT_EQ(seen.flag, order.flag);
}

}  // namespace
}  // namespace brant::test
