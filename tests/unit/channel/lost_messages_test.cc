#include <gtest/gtest.h>

#include "ops/channel/receive_turns.h"

namespace brant {
namespace {

TEST(LostMessages, are_known_until_their_receive_takes_them) {
  LostMessages lost;
  EXPECT_TRUE(lost.empty());
  EXPECT_EQ(lost.add({7, 100, Status::no_memory, true}), Status::ok);
  EXPECT_TRUE(lost.has(7));
  EXPECT_FALSE(lost.take(6).has_value());
  const std::optional<LostMessage> message = lost.take(7);
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->bytes, 100u);
  EXPECT_EQ(message->status, Status::no_memory);
  EXPECT_TRUE(message->sender_knows);
  EXPECT_TRUE(lost.empty());
}

TEST(LostMessages, keep_the_first_word_of_a_message) {
  LostMessages lost;
  EXPECT_EQ(lost.add({7, 0, Status::canceled, true}), Status::ok);
  EXPECT_EQ(lost.add({7, 0, Status::no_memory, false}), Status::ok);
  EXPECT_EQ(lost.take(7)->status, Status::canceled);
  EXPECT_FALSE(lost.has(7));
}

TEST(LostMessages, are_no_more_than_a_window_holds) {
  LostMessages lost;
  for (std::uint64_t number = 0; number < kWindowMessages; ++number) {
    ASSERT_EQ(lost.add({number, 0, Status::canceled, false}), Status::ok);
  }
  EXPECT_EQ(lost.add({kWindowMessages, 0, Status::canceled, false}), Status::internal);
  EXPECT_EQ(lost.add({3, 0, Status::canceled, false}), Status::ok) << "known already";
}

}  // namespace
}  // namespace brant
