#include "models/halo/message_cut.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace {

using namespace brant;
using namespace brant::halo;

using Pairs = std::vector<std::pair<int, int>>;  // of blocks

HaloOptions cube(std::int64_t cells) {
  return {.grid = {cells, cells, cells},
          .divide = {4, 4, 4},
          .periodic = {true, true, true},
          .ghost = {1, 1, 1},
          .variables = 3};
}

Pairs pairs_of(std::span<const Link> message) {
  Pairs pairs;
  for (const Link& link : message) pairs.emplace_back(link.message.from, link.message.to);
  return pairs;
}

std::size_t bytes_of(std::span<const Link> message) {
  std::size_t bytes = 0;
  for (const Link& link : message) bytes += link.bytes;
  return bytes;
}

/// With each rank, its messages in the order of the cut.
std::map<int, std::vector<Pairs>> by_rank(const std::vector<std::span<const Link>>& messages) {
  std::map<int, std::vector<Pairs>> ranks;
  for (const auto& message : messages) ranks[message[0].rank].push_back(pairs_of(message));
  return ranks;
}

TEST(MessageCut, is_the_same_at_both_ends) {
  constexpr int kRanks = 4;
  const HaloOptions options = cube(120);
  for (const MessageCut cut :
       {MessageCut{HaloMessages::per_process, 4096}, MessageCut{HaloMessages::per_process, MessageCut::kWhole},
        MessageCut{HaloMessages::per_block}}) {
    for (int one = 0; one < kRanks; ++one) {
      const Layout sender(options, one, kRanks);
      const auto sent = by_rank(cut_into_messages(sender.sends(), cut));
      for (const auto& [other, messages] : sent) {
        const Layout receiver(options, other, kRanks);
        EXPECT_EQ(by_rank(cut_into_messages(receiver.receives(), cut)).at(one), messages);
      }
    }
  }
}

TEST(MessageCut, into_groups_keeps_all_links_in_their_order_and_makes_no_small_rest) {
  const Layout layout(cube(120), 0, 2);
  std::map<int, Pairs> expected;
  std::map<int, std::size_t> bytes;
  for (const Link& link : layout.sends()) {
    expected[link.rank].emplace_back(link.message.from, link.message.to);
    bytes[link.rank] += link.bytes;
  }
  const auto messages = cut_into_messages(layout.sends(), {HaloMessages::per_process, std::size_t{64} << 10});
  std::map<int, Pairs> found;
  std::map<int, int> count;
  for (const auto& message : messages) {
    const Pairs pairs = pairs_of(message);
    Pairs& all = found[message[0].rank];
    all.insert(all.end(), pairs.begin(), pairs.end());
    ++count[message[0].rank];
    EXPECT_GE(bytes_of(message), bytes[message[0].rank] / 4);
  }
  EXPECT_EQ(found, expected);
  for (const auto& [rank, groups] : count) {
    EXPECT_GT(groups, 1) << rank;
    EXPECT_LE(groups, 4) << rank;
  }
}

TEST(MessageCut, of_little_is_one_group) {
  const Layout layout(cube(8), 0, 2);
  EXPECT_EQ(cut_into_messages(layout.sends(), {HaloMessages::per_process, std::size_t{64} << 10}).size(), 2u);
}

TEST(MessageCut, into_groups_has_the_first_of_each_rank_in_front) {
  const Layout layout(cube(120), 0, 4);
  const auto messages = cut_into_messages(layout.sends(), {HaloMessages::per_process, 4096});
  const std::size_t ranks = by_rank(messages).size();
  ASSERT_GT(ranks, 2u);
  std::vector<int> first;
  for (std::size_t i = 0; i < ranks; ++i) first.push_back(messages[i][0].rank);
  std::ranges::sort(first);
  EXPECT_EQ(std::ranges::adjacent_find(first), first.end());
}

}  // namespace
