#include "ops/channel/delivery_window.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "ops/channel/table.h"
#include "ops/channel/tag.h"

namespace brant {
namespace {

TEST(LandedPrefix, grows_when_the_gap_closes_in_any_order) {
  LandedPrefix landed;
  std::mt19937 random(3);
  std::uint64_t first = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<std::uint64_t> window(kWindowMessages);
    std::iota(window.begin(), window.end(), first);
    std::shuffle(window.begin(), window.end(), random);
    std::vector<bool> seen(kWindowMessages);
    for (const std::uint64_t number : window) {
      landed.landed(number, 1);
      seen[number - first] = true;
      const auto gap = std::find(seen.begin(), seen.end(), false);
      EXPECT_EQ(landed.prefix(), first + static_cast<std::uint64_t>(gap - seen.begin()));
    }
    first += kWindowMessages;
  }
}

TEST(LandedPrefix, knows_whether_there_is_a_gap) {
  LandedPrefix landed(10);
  EXPECT_FALSE(landed.has_gaps());
  landed.landed(11, 8);
  EXPECT_TRUE(landed.has_gaps());
  EXPECT_TRUE(landed.has(11));
  EXPECT_FALSE(landed.has(10));
  landed.landed(10, 8);
  EXPECT_FALSE(landed.has_gaps());
  EXPECT_EQ(landed.prefix(), 12u);
  landed.landed(12, 8);
  EXPECT_EQ(landed.prefix(), 13u);
  EXPECT_FALSE(landed.has_gaps());
}

TEST(SendWindow, bounds_messages_and_bytes_but_lets_one_large_message_through) {
  SendWindow window;
  EXPECT_TRUE(window.has_room(kWindowBytes * 100));
  window.take(kWindowBytes * 100);
  EXPECT_FALSE(window.has_room(0));
  window.acknowledge(1);
  for (std::uint32_t i = 0; i < kWindowMessages; ++i) {
    ASSERT_TRUE(window.has_room(8)) << i;
    window.take(8);
  }
  EXPECT_FALSE(window.has_room(8));
  window.acknowledge(2);
  EXPECT_TRUE(window.has_room(8));
  window.take(kTellEveryBytes);
  EXPECT_FALSE(window.has_room(kWindowBytes));
}

TEST(SendWindow, never_waits_for_a_receiver_that_has_everything) {
  // Whatever the sizes and the order of landing: when all that was sent has landed, the next message may go.
  const std::uint64_t sizes[] = {1,
                                 2 << 20,
                                 kTellEveryBytes - 1,
                                 kTellEveryBytes,
                                 kWindowBytes - kTellEveryBytes + 1,
                                 kWindowBytes,
                                 3 * kWindowBytes};
  std::mt19937 random(11);
  SendWindow window;
  LandedPrefix landed;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> under_way;  // number, bytes
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t bytes = sizes[random() % std::size(sizes)];
    while (!window.has_room(bytes)) {
      ASSERT_FALSE(under_way.empty()) << "deadlock at message " << window.next() << " of " << bytes << " bytes";
      const std::size_t which = random() % under_way.size();
      landed.landed(under_way[which].first, under_way[which].second);
      under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(which));
      if (!landed.should_tell()) continue;
      landed.tell();
      window.acknowledge(landed.told());
    }
    under_way.emplace_back(window.take(bytes), bytes);
  }
}

TEST(SendWindow, a_refused_message_leaves_no_trace) {
  SendWindow window;
  window.take(100);
  const std::uint64_t number = window.take(kWindowBytes - 100);
  EXPECT_FALSE(window.has_room(1));
  window.give_back_last();
  EXPECT_TRUE(window.has_room(1));
  EXPECT_EQ(window.take(1), number);
}

TEST(SendWindow, an_acknowledgement_beyond_what_was_sent_is_cut) {
  SendWindow window;
  window.take(10);
  window.acknowledge(1000);
  EXPECT_EQ(window.acknowledged(), 1u);
}

TEST(Tag, fields_do_not_overlap_and_only_the_acknowledge_bit_is_ignored) {
  constexpr std::int32_t kRankMax = 32767;
  const auto channel = [](std::uint32_t id, tag::Sender sender, std::uint64_t counter) {
    return tag::channel(tag::Type::channel, ChannelId{id}, sender, counter) & tag::kChannelReceiveMask;
  };
  const tag::Sender sender{kRankMax, 0};
  const std::uint64_t plain = tag::channel(tag::Type::channel, ChannelId{kChannelIdMax}, sender, tag::kCounterMask);
  const std::uint64_t acknowledged =
      tag::channel(tag::Type::channel_acknowledged, ChannelId{kChannelIdMax}, sender, tag::kCounterMask);
  EXPECT_NE(plain, acknowledged);
  EXPECT_EQ(plain & tag::kChannelReceiveMask, acknowledged & tag::kChannelReceiveMask);
  EXPECT_EQ(tag::type_of(plain), tag::Type::channel);
  EXPECT_EQ(tag::type_of(acknowledged), tag::Type::channel_acknowledged);
  const std::uint64_t other_side = channel(kChannelIdMax, {kRankMax, 1}, tag::kCounterMask);
  const std::uint64_t other_rank = channel(kChannelIdMax, {kRankMax - 1, 0}, tag::kCounterMask);
  const std::uint64_t other_id = channel(kChannelIdMax - 1, sender, tag::kCounterMask);
  const std::uint64_t other_counter = channel(kChannelIdMax, sender, 0);
  for (const std::uint64_t other : {other_side, other_rank, other_id, other_counter}) {
    EXPECT_NE(plain & tag::kChannelReceiveMask, other);
  }
}

TEST(Tag, of_a_receive_comes_again_only_after_all_receives_that_there_can_be) {
  EXPECT_GE(std::size_t{tag::kCounterMask} + 1, ChannelPools::kTransfersMax);
}

}  // namespace
}  // namespace brant
