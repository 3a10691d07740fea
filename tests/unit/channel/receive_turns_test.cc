#include "ops/channel/receive_turns.h"

#include <gtest/gtest.h>

namespace brant {
namespace {

TEST(ReceiveTurns, follow_each_other) {
  ReceiveTurns turns;
  EXPECT_EQ(turns.take(), 0u);
  EXPECT_EQ(turns.take(), 1u);
  EXPECT_EQ(turns.next(), 2u);
  EXPECT_EQ(turns.first_free(), 2u);
  EXPECT_TRUE(turns.in_order());
}

TEST(ReceiveTurns, that_are_given_back_come_first_and_the_lowest_of_them) {
  ReceiveTurns turns;
  for (int i = 0; i < 4; ++i) static_cast<void>(turns.take());
  turns.give_back(2);
  turns.give_back(1);
  EXPECT_FALSE(turns.in_order());
  EXPECT_EQ(turns.first_free(), 1u);
  EXPECT_FALSE(turns.is_taken(1));
  EXPECT_TRUE(turns.is_taken(3));
  EXPECT_FALSE(turns.is_taken(4)) << "no receive had it yet";
  EXPECT_EQ(turns.take(), 1u);
  EXPECT_EQ(turns.take(), 2u);
  EXPECT_EQ(turns.take(), 4u);
}

TEST(ReceiveTurns, of_messages_for_nobody_are_not_given) {
  ReceiveTurns turns;
  for (int i = 0; i < 2; ++i) static_cast<void>(turns.take());
  turns.give_back(0);
  turns.strike(0);
  turns.skip_to(5);
  EXPECT_EQ(turns.take(), 5u);
  turns.skip_to(3);
  EXPECT_EQ(turns.take(), 6u) << "never one that is over";
}

}  // namespace
}  // namespace brant
