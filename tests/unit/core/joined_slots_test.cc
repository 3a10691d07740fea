#include "core/joined_slots.h"

#include <cstdint>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "brant/base/status.h"

namespace brant {
namespace {

TEST(JoinedSlots, a_peer_is_found_by_its_rank_until_it_is_removed_and_its_slot_gets_another_rank) {
  JoinedSlots slots;
  Peer& first = slots.add(true);
  Peer& second = slots.add(false);
  const std::int32_t rank = first.rank.value;
  EXPECT_TRUE(first.joined && second.joined);
  EXPECT_EQ(slots.find(rank), &first);
  EXPECT_EQ(slots.find(second.rank.value), &second);
  EXPECT_NE(joined_rank::side_of(rank), joined_rank::side_of(second.rank.value)) << "one called, the other was called";
  slots.remove(first);
  EXPECT_EQ(slots.find(rank), nullptr);
  Peer& third = slots.add(true);
  EXPECT_EQ(joined_rank::slot_of(third.rank.value), joined_rank::slot_of(rank));
  EXPECT_NE(third.rank.value, rank);
  EXPECT_EQ(slots.find(rank), nullptr) << "what was under way from the first is not the third's";
  std::vector<Peer*> visited;
  slots.for_each([&](Peer& peer) { visited.push_back(&peer); });
  EXPECT_EQ(visited, (std::vector<Peer*>{&third, &second}));
}

TEST(JoinedSlots, find_nobody_by_ranks_that_no_slot_gave) {
  JoinedSlots slots;
  const std::int32_t rank = slots.add(true).rank.value;
  for (const std::int32_t other : {-1, 0, 1, rank + 1, rank ^ 1 << 20}) EXPECT_EQ(slots.find(other), nullptr) << other;
}

TEST(JoinedSlots, more_than_there_are_is_an_error_that_says_how_to_get_one_free) {
  JoinedSlots slots;
  Peer& first = slots.add(true);
  for (std::uint32_t i = 1; i < joined_rank::kSlots; ++i) slots.add(true);
  try {
    slots.add(true);
    FAIL() << "one too many";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::limit_reached);
    EXPECT_NE(std::string_view(error.what()).find("leave"), std::string_view::npos) << error.what();
  }
  slots.remove(first);
  EXPECT_NO_THROW(slots.add(true));
}

}  // namespace
}  // namespace brant
