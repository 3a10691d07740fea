#include "ops/place/directory.h"

#include <gtest/gtest.h>

namespace brant::place {
namespace {

constexpr std::int32_t kSelf = 2;
constexpr Identity kMine = Identity::of(kSelf, 7);
constexpr Identity kTheirs = Identity::of(4, 7);

TEST(Identity, says_its_home_and_its_number) {
  constexpr Identity id = Identity::of(Identity::kRanksMax - 1, (1ull << Identity::kNumberBits) - 1);
  EXPECT_EQ(id.home(), Identity::kRanksMax - 1);
  EXPECT_EQ(id.number(), (1ull << Identity::kNumberBits) - 1);
  EXPECT_NE(kMine, kTheirs);
}

TEST(Directory, has_everything_at_home_at_first) {
  const Directory directory(kSelf);
  EXPECT_FALSE(directory.anything_moved());
  EXPECT_EQ(directory.rank_of(kMine), kSelf);
  EXPECT_EQ(directory.rank_of(kTheirs), 4);
  EXPECT_TRUE(directory.lives_here(kMine));
  EXPECT_FALSE(directory.lives_here(kTheirs));
}

TEST(Directory, takes_over_newer_news_only) {
  Directory directory(kSelf);
  EXPECT_TRUE(directory.add_way(kTheirs, {1, 5}));
  EXPECT_FALSE(directory.add_way(kTheirs, {3, 6})) << "a way is changed by a turn";
  Way& way = *directory.use_way(kTheirs);
  directory.start_turn(way);
  EXPECT_FALSE(directory.turned(way, {3, 4})) << "older";
  EXPECT_FALSE(directory.turned(way, {3, 5})) << "as old";
  EXPECT_EQ(directory.rank_of(kTheirs), 1);
  EXPECT_TRUE(directory.turned(way, {3, 6}));
  EXPECT_EQ(directory.rank_of(kTheirs), 3);
  EXPECT_EQ(directory.ways(), 1u);
}

TEST(Directory, remembers_as_many_ways_as_it_may_and_all_that_is_away) {
  Directory directory(kSelf, 2);
  EXPECT_TRUE(directory.add_way(Identity::of(0, 1), {1, 1}));
  EXPECT_TRUE(directory.add_way(Identity::of(0, 2), {1, 1}));
  EXPECT_TRUE(directory.full());
  EXPECT_FALSE(directory.add_way(Identity::of(0, 3), {1, 1}));
  EXPECT_EQ(directory.rank_of(Identity::of(0, 3)), 0) << "by way of its home";
  for (std::uint64_t number = 0; number < 10; ++number) {
    EXPECT_TRUE(directory.add_way(Identity::of(kSelf, number), {1, 1})) << "a home knows where all of its things are";
  }
  EXPECT_EQ(directory.ways(), 2u);
  EXPECT_EQ(directory.away(), 10u);
}

TEST(Directory, gives_up_the_way_that_was_not_used_for_longest) {
  Directory directory(kSelf, 2);
  const Identity first = Identity::of(0, 1), second = Identity::of(0, 2);
  directory.add_way(first, {1, 1});
  directory.add_way(second, {1, 1});
  ASSERT_NE(directory.use_way(first), nullptr);
  ASSERT_EQ(directory.least_used()->id, second);
  directory.start_turn(*directory.use_way(second));
  ASSERT_EQ(directory.least_used()->id, first) << "what turns stays";
  EXPECT_TRUE(directory.turned(*directory.use_way(second), {3, 2}));
  directory.start_turn(*directory.use_way(first));
  ASSERT_EQ(directory.least_used()->id, second);
  EXPECT_EQ(directory.rank_of(second), 3);
  directory.start_turn(*directory.use_way(second));
  EXPECT_EQ(directory.least_used(), nullptr);
  directory.forget_way(second);
  EXPECT_FALSE(directory.full());
}

TEST(Directory, knows_what_came_and_what_went) {
  Directory directory(kSelf);
  directory.enter(kTheirs, {.epoch = 3, .epoch_before = 2, .awaited = 1, .senders = {}});
  EXPECT_TRUE(directory.lives_here(kTheirs));
  EXPECT_EQ(directory.rank_of(kTheirs), kSelf);
  EXPECT_FALSE(directory.guest(kTheirs)->settled());
  directory.forget_guest(kTheirs);
  directory.leave_stub(kTheirs, {.next = {0, 4}, .epoch = 3, .awaited = 2});
  EXPECT_FALSE(directory.lives_here(kTheirs));
  EXPECT_EQ(directory.rank_of(kTheirs), 0) << "the stub's next place";
  EXPECT_EQ(directory.rank_of(Identity::of(1, 1)), 1) << "others are where they were";
  directory.remove_stub(kTheirs);
  EXPECT_EQ(directory.rank_of(kTheirs), 4);
  EXPECT_FALSE(directory.anything_moved());
}

TEST(Directory, never_uses_an_epoch_of_its_things_again) {
  Directory directory(kSelf);
  EXPECT_EQ(directory.first_epoch(), 1u);
  directory.enter(kMine, {.epoch = 9, .epoch_before = 8, .awaited = 0, .senders = {}});
  directory.forget_guest(kMine);
  EXPECT_EQ(directory.first_epoch(), 10u) << "news of its former stays may still be under way";
  directory.enter(kTheirs, {.epoch = 20, .epoch_before = 19, .awaited = 0, .senders = {}});
  directory.forget_guest(kTheirs);
  EXPECT_EQ(directory.first_epoch(), 10u) << "its own home knows its epochs";
}

TEST(Directory, has_nothing_left_when_all_is_forgotten) {
  Directory directory(kSelf);
  directory.add_way(kTheirs, {1, 1});
  directory.add_way(kMine, {1, 1});
  directory.enter(Identity::of(0, 1), {});
  directory.leave_stub(Identity::of(0, 2), {});
  EXPECT_TRUE(directory.anything_moved());
  EXPECT_FALSE(directory.lives_here(kMine));
  directory.forget_way(kTheirs);
  directory.forget_way(kTheirs);
  directory.forget_way(kMine);
  directory.forget_guest(Identity::of(0, 1));
  directory.forget_guest(Identity::of(0, 1));
  directory.remove_stub(Identity::of(0, 2));
  directory.remove_stub(Identity::of(0, 2));
  EXPECT_FALSE(directory.anything_moved());
  EXPECT_TRUE(directory.lives_here(kMine));
}

}  // namespace
}  // namespace brant::place
