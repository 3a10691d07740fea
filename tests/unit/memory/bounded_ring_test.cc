#include "port/memory/emulated/bounded_ring.h"

#include <memory>

#include <gtest/gtest.h>

namespace brant::port::memory {
namespace {

TEST(BoundedRing, gives_back_in_order_across_the_wrap) {
  BoundedRing<int> ring(3);
  int next_in = 0;
  int next_out = 0;
  for (int round = 0; round < 10; ++round) {
    while (!ring.full()) EXPECT_TRUE(ring.push(int{next_in++}));
    EXPECT_EQ(ring.pop(), next_out++);
    EXPECT_EQ(ring.pop(), next_out++);
  }
  EXPECT_EQ(ring.size(), 1u);
}

TEST(BoundedRing, refuses_when_full_and_leaves_the_item) {
  BoundedRing<std::unique_ptr<int>> ring(1);
  EXPECT_TRUE(ring.push(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  EXPECT_FALSE(ring.push(std::move(second)));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(*ring.pop(), 1);
  EXPECT_TRUE(ring.empty());
}

TEST(BoundedRing, holds_nothing_of_what_was_taken) {
  BoundedRing<std::shared_ptr<int>> ring(2);
  auto item = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = item;
  EXPECT_TRUE(ring.push(std::move(item)));
  ring.pop();
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace brant::port::memory
