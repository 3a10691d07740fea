#include "ops/place/delivery.h"

#include <gtest/gtest.h>

#include "brant/base/status.h"
#include "unit/place/world.h"

namespace brant::place {
namespace {

using Kind = Header::Kind;
using test::World;

/// The home of the first thing is 0.
constexpr Identity kThing = Identity::of(0, 0);

TEST(Delivery, of_what_never_moved_goes_home_and_leaves_no_record) {
  World world({.things = 1});
  world.send(3, 0);
  world.send(0, 0);
  EXPECT_EQ(world.taken(0, 0), 1u) << "at home it is delivered at once";
  EXPECT_TRUE(world.carry(3, 0));
  EXPECT_EQ(world.taken(0, 3), 1u);
  world.drain();
  world.check_forgotten();
  EXPECT_EQ(world.error(), "");
}

TEST(Delivery, is_direct_once_the_sender_was_told_the_place) {
  World world({.things = 1});
  ASSERT_TRUE(world.move(0, 1));
  world.drain();
  world.send(3, 0);
  world.drain();
  EXPECT_EQ(world.direct, 0u);
  EXPECT_EQ(world.directory(3).rank_of(kThing), 1);
  world.send(3, 0);
  EXPECT_TRUE(world.carry(3, 1));
  EXPECT_EQ(world.direct, 1u);
  EXPECT_EQ(world.error(), "");
}

TEST(Delivery, gives_up_the_way_that_was_not_used_for_longest) {
  World world({.things = 3, .ways_max = 2});
  for (std::size_t thing = 0; thing < 3; ++thing) ASSERT_TRUE(world.move(thing, 4));
  world.drain();
  for (std::size_t thing = 0; thing < 3; ++thing) {
    world.send(3, thing);
    world.drain();
    EXPECT_EQ(world.directory(3).rank_of(world.id(thing)), 4);
  }
  EXPECT_EQ(world.directory(3).ways(), 1u) << "there is room for one more";
  EXPECT_EQ(world.directory(3).rank_of(kThing), 0);
  world.check_rest();
  EXPECT_EQ(world.error(), "");
}

TEST(Delivery, waits_at_home_while_the_home_changes_its_way) {
  World world({.things = 1});
  ASSERT_TRUE(world.move(0, 1));
  world.drain();
  ASSERT_TRUE(world.move(0, 2));
  EXPECT_TRUE(world.carry(1, 2)) << "it arrives";
  EXPECT_TRUE(world.carry(2, 0)) << "the home hears of it, and ends its way to rank 1";
  world.send(3, 0);
  EXPECT_TRUE(world.carry(3, 0));
  EXPECT_EQ(world.delivery(0).parked(), 1u);
  EXPECT_EQ(world.parked_at_home, 1u);
  EXPECT_EQ(world.directory(1).stubs(), 1u);
  EXPECT_FALSE(world.move(0, 4)) << "the stub at rank 1 is still there";
  EXPECT_TRUE(world.carry(0, 1));
  EXPECT_EQ(world.directory(1).stubs(), 0u);
  EXPECT_TRUE(world.carry(1, 2));
  EXPECT_TRUE(world.delivery(2).may_depart(kThing));
  world.drain();
  world.check_rest();
  EXPECT_EQ(world.error(), "");
}

TEST(Delivery, of_a_thing_that_is_elsewhere_or_unsettled_is_no_move) {
  World world({.things = 1});
  const auto text = [&world](std::int32_t from, std::int32_t to) -> std::string {
    try {
      static_cast<void>(world.delivery(from).depart(kThing, to));
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_argument);
      return error.what();
    }
    return "";
  };
  EXPECT_NE(text(3, 1).find("thing 0 of rank 0 cannot move from rank 3 to rank 1: it is not here"), std::string::npos);
  EXPECT_NE(text(0, 0).find("is there"), std::string::npos);
  ASSERT_TRUE(world.move(0, 1));
  world.drain();
  ASSERT_TRUE(world.move(0, 2));
  EXPECT_TRUE(world.carry(1, 2));
  EXPECT_NE(text(2, 3).find("has not settled"), std::string::npos);
}

struct Contradiction {
  const char* what;
  Header header;
};

TEST(Delivery, refuses_letters_that_contradict_what_was_sent) {
  World world({.things = 1});
  ASSERT_TRUE(world.move(0, 1));
  world.drain();
  const Contradiction all[] = {
      {"no such kind", {.kind = Kind{9}, .origin = 3, .id = kThing, .place = {}}},
      {"a call for a thing that is not here", {.origin = 3, .id = kThing, .place = {}}},
      {"a call by way of a home that is not here", {.by_home = true, .origin = 3, .id = kThing, .place = {}}},
      {"a call that goes round", {.hops = 3, .origin = 3, .id = kThing, .place = {}}},
      {"an answer that nobody waits for", {.kind = Kind::opened, .origin = 1, .id = kThing, .place = {1, 1}}},
  };
  for (const Contradiction& one : all) {
    Letter letter{one.header, {}};
    EXPECT_FALSE(world.delivery(2).receive(letter)) << one.what;
  }
  EXPECT_FALSE(
      world.delivery(1).arrive({.id = kThing, .from = 3, .epoch = 2, .epoch_before = 1, .awaited = 1, .senders = {}}))
      << "it is there already";
  EXPECT_FALSE(
      world.delivery(0).arrive({.id = kThing, .from = 1, .epoch = 1, .epoch_before = 0, .awaited = 1, .senders = {}}))
      << "it has gone to rank 1 with that epoch";
  EXPECT_EQ(world.error(), "");
}

}  // namespace
}  // namespace brant::place
