// Messages in parts: which leave when they are ready, in which runs, how each is told, and what becomes of a message
// whose parts do not come.
#include "brant/partitioned/partitioned.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "brant/core/device.h"
#include "brant/core/kernel.h"
#include "brant/core/runtime.h"
#include "brant/notify.h"
#include "core/engine.h"
#include "ops/partitioned/parts.h"
#include "support/in_process_job.h"

namespace brant::test {
namespace {

using namespace std::chrono_literals;

/// Rank 0 sends, rank 1 receives; with one rank, both ends are its own.
struct Ends {
  Ends(const JobOptions& options, const PartitionedOptions& sent, const PartitionedOptions& received)
      : job(options),
        to(options.ranks - 1),
        sender(job.rank(0), Channel::open(job.rank(0), Rank{to}, ChannelId{3}), sent),
        receiver(job.rank(to), Channel::open(job.rank(to), Rank{0}, ChannelId{3}), received) {}
  explicit Ends(const JobOptions& options, std::uint32_t parts, std::size_t bytes_min = 0)
      : Ends(options, {parts, bytes_min}, {parts, bytes_min}) {}

  InProcessJob job;
  const int to;
  PartitionedSend sender;
  PartitionedReceive receiver;
};

std::vector<int> numbers(std::size_t count, int first) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

TEST(PartRanges, parts_lie_behind_each_other_and_are_all_of_it) {
  for (const std::size_t bytes : {0, 1, 63, 64, 65, 1000, 4096, 100'001}) {
    for (const std::uint32_t parts : {1u, 2u, 7u, 64u}) {
      std::size_t reached = 0;
      for (std::uint32_t part = 0; part < parts; ++part) {
        const PartRange range = part_range(bytes, parts, part);
        EXPECT_EQ(range.offset, reached);
        reached += range.bytes;
      }
      EXPECT_EQ(reached, bytes);
    }
  }
  EXPECT_EQ(part_range(100, 2, 2).bytes, 0u) << "no such part";
}

class PartedMessages : public testing::TestWithParam<int> {
 protected:
  static constexpr std::uint32_t kParts = 8;
  static constexpr std::size_t kCount = 64 * kParts / sizeof(int) * 100;

  std::vector<int> source_ = numbers(kCount, 5);
  std::vector<int> landing_ = std::vector<int>(kCount);
};
INSTANTIATE_TEST_SUITE_P(Ranks, PartedMessages, testing::Values(1, 2), testing::PrintToStringParamName());

TEST_P(PartedMessages, each_part_comes_when_it_is_ready_and_is_told) {
  Ends ends(ranks(GetParam()), kParts);
  Operation all = ends.receiver.receive(std::span(landing_), 1);
  Operation sent = ends.sender.send(std::span(source_), 1, Moment::delivered);
  const std::size_t each = kCount / kParts;
  for (const std::uint32_t part : {3u, 0u, 7u, 1u, 2u, 6u, 5u, 4u}) {
    ends.job.run(20);
    EXPECT_FALSE(ends.receiver.arrived(part));
    EXPECT_FALSE(all.done());
    Operation comes = ends.receiver.when(part);
    EXPECT_FALSE(comes.done());
    ASSERT_EQ(ends.sender.ready(part), Status::ok);
    const OpResult result = ends.job.outcome(comes);
    EXPECT_EQ(result.status, Status::ok);
    EXPECT_EQ(result.bytes, each * sizeof(int));
    EXPECT_EQ(landing_[part * each], source_[part * each]);
    EXPECT_EQ(landing_[(part + 1) * each - 1], source_[(part + 1) * each - 1]);
    EXPECT_EQ(ends.job.outcome(ends.receiver.when(part)).status, Status::ok) << "it has come already";
  }
  EXPECT_EQ(ends.job.outcome(all).status, Status::ok);
  EXPECT_EQ(all.result().bytes, kCount * sizeof(int));
  EXPECT_EQ(ends.job.outcome(sent).status, Status::ok);
  EXPECT_EQ(landing_, source_);
  EXPECT_EQ(ends.sender.runs_sent(), kParts);
}

TEST_P(PartedMessages, small_neighbours_go_together) {
  Ends ends(ranks(GetParam()), kParts, 3 * kCount / kParts * sizeof(int));
  Operation all = ends.receiver.receive(std::span(landing_), 1);
  Operation sent = ends.sender.send(std::span(source_), 1);
  for (const std::uint32_t part : {4u, 6u}) ASSERT_EQ(ends.sender.ready(part), Status::ok);
  ends.job.run(50);
  EXPECT_EQ(ends.sender.runs_sent(), 0u) << "neither is enough, and both may grow";
  ASSERT_EQ(ends.sender.ready(5), Status::ok);
  EXPECT_EQ(ends.sender.runs_sent(), 1u);
  ASSERT_EQ(ends.sender.ready(7), Status::ok);
  EXPECT_EQ(ends.sender.runs_sent(), 2u) << "it can grow no more";
  for (const std::uint32_t part : {0u, 2u, 3u}) ASSERT_EQ(ends.sender.ready(part), Status::ok);
  EXPECT_EQ(ends.sender.runs_sent(), 2u);
  ASSERT_EQ(ends.sender.ready(1), Status::ok);
  EXPECT_EQ(ends.sender.runs_sent(), 3u);
  EXPECT_EQ(ends.job.outcome(all).status, Status::ok);
  EXPECT_EQ(ends.job.outcome(sent).status, Status::ok);
  EXPECT_EQ(landing_, source_);
}

TEST_P(PartedMessages, many_messages_after_each_other) {
  Ends ends(ranks(GetParam()), kParts);
  for (std::uint64_t epoch = 1; epoch <= 30; ++epoch) {
    source_ = numbers(kCount, static_cast<int>(epoch));
    const bool early = epoch % 2 == 0;  // the receive comes first, or the parts do
    Operation sent = ends.sender.send(std::span(source_), epoch);
    const auto ready = [&] {
      for (std::uint32_t part = 0; part < kParts; ++part) ASSERT_EQ(ends.sender.ready(part), Status::ok);
    };
    if (early) ready();
    ends.job.run(10);
    Operation all = ends.receiver.receive(std::span(landing_), epoch);
    if (!early) ready();
    ASSERT_EQ(ends.job.outcome(all).status, Status::ok) << epoch;
    ASSERT_EQ(ends.job.outcome(sent).status, Status::ok) << epoch;
    ASSERT_EQ(landing_, source_) << epoch;
  }
}

TEST_P(PartedMessages, a_message_without_bytes_arrives) {
  Ends ends(ranks(GetParam()), 2);
  Operation all = ends.receiver.receive(Buffer{}, 1);
  Operation sent = ends.sender.send(ConstBuffer{}, 1);
  for (const std::uint32_t part : {1u, 0u}) ASSERT_EQ(ends.sender.ready(part), Status::ok);
  EXPECT_EQ(ends.job.outcome(all).status, Status::ok);
  EXPECT_EQ(ends.job.outcome(sent).status, Status::ok);
}

TEST_P(PartedMessages, what_does_not_fit_is_dropped_and_the_next_message_arrives) {
  Ends ends(ranks(GetParam()), kParts);
  std::uint64_t epoch = 0;
  const auto outcome = [&](std::size_t count, std::uint64_t wanted) {
    Operation all = ends.receiver.receive(std::span(landing_).first(count), wanted);
    Operation sent = ends.sender.send(std::span(source_), ++epoch);
    for (std::uint32_t part = 0; part < kParts; ++part) EXPECT_EQ(ends.sender.ready(part), Status::ok);
    const Status status = ends.job.outcome(all).status;
    static_cast<void>(ends.job.outcome(sent));
    return status;
  };
  EXPECT_EQ(outcome(kCount - 1, 1), Status::truncated);
  EXPECT_EQ(landing_, std::vector<int>(kCount)) << "nothing of it is written";
  EXPECT_EQ(outcome(kCount, 5), Status::peer_rejected) << "another epoch";
  EXPECT_EQ(outcome(kCount, 3), Status::ok);
  EXPECT_EQ(landing_, source_);
}

TEST(PartedMessagesOfTheLost, end_with_peer_lost) {
  Ends ends(ranks(2), 4);
  std::vector<int> source = numbers(1000, 1), landing(1000);
  Operation all = ends.receiver.receive(std::span(landing), 1);
  Operation comes = ends.receiver.when(3);
  Operation sent = ends.sender.send(std::span(source), 1);
  ASSERT_EQ(ends.sender.ready(0), Status::ok);
  ASSERT_TRUE(ends.job.run_until([&] { return ends.receiver.arrived(0); }));
  ends.job.rank(0).worker().engine().shut_down();  // its program ends, with a message under way
  ends.job.run(200);
  EXPECT_EQ(ends.job.outcome(all).status, Status::peer_lost);
  EXPECT_EQ(ends.job.outcome(comes).status, Status::peer_lost);
  EXPECT_TRUE(ends.receiver.arrived(0));
}

TEST(PartedMessagesToTheLost, end_with_peer_lost_when_the_next_part_is_ready) {
  Ends ends(ranks(2), 4);
  std::vector<int> source = numbers(1000, 1), landing(1000);
  Operation all = ends.receiver.receive(std::span(landing), 1);
  Operation sent = ends.sender.send(std::span(source), 1, Moment::delivered);
  ASSERT_EQ(ends.sender.ready(0), Status::ok);
  ASSERT_TRUE(ends.job.run_until([&] { return ends.receiver.arrived(0); }));
  ends.receiver.close();
  ends.job.rank(1).worker().engine().shut_down();
  ends.job.run(200);
  EXPECT_EQ(ends.sender.ready(2), Status::ok) << "what the network says is told by the message";
  EXPECT_EQ(ends.job.outcome(sent).status, Status::peer_lost);
  EXPECT_EQ(ends.job.outcome(all).status, Status::canceled);
}

/// What another program may write into the channel.
TEST(PartedMessagesOfSomethingElse, break_the_receiver_and_nothing_more) {
  const auto outcome_of = [](auto&& send) {
    InProcessJob job(ranks(2));
    Channel channel = Channel::open(job.rank(0), Rank{1}, ChannelId{3});
    PartitionedReceive receiver(job.rank(1), Channel::open(job.rank(1), Rank{0}, ChannelId{3}), {.parts = 4});
    std::vector<int> landing(1000);
    Operation all = receiver.receive(std::span(landing), 1);
    send(channel);
    const Status status = job.outcome(all).status;
    EXPECT_EQ(receiver.receive(std::span(landing), 2).result().status, Status::invalid_argument)
        << "it is out of order";
    return status;
  };
  const auto post = [](Channel& channel, const auto& thing) {
    Op unobserved;
    static_cast<void>(channel.post_send(ConstBuffer(&thing, sizeof(thing), MemoryKind::host), unobserved));
  };
  EXPECT_EQ(outcome_of([&](Channel& channel) { post(channel, 7); }), Status::invalid_argument);
  PartHead head{.epoch = 1, .bytes = 4000, .parts = 4, .first = 3, .count = 2};
  EXPECT_EQ(outcome_of([&](Channel& channel) { post(channel, head); }), Status::invalid_argument) << "beyond its parts";
  head.parts = 0;
  EXPECT_EQ(outcome_of([&](Channel& channel) { post(channel, head); }), Status::invalid_argument);
  EXPECT_EQ(outcome_of([&](Channel& channel) {
              const std::vector<int> part(256);
              for (int i = 0; i < 2; ++i) {
                post(channel, PartHead{.epoch = 1, .bytes = 4000, .parts = 4, .first = 0, .count = 1});
                Op unobserved;
                static_cast<void>(channel.post_send(std::span(part), unobserved));
              }
            }),
            Status::invalid_argument)
      << "the same part again";
}

TEST(PartedMessagesOfOtherParts, are_refused) {
  Ends ends(ranks(2), {4, 0}, {5, 0});
  std::vector<int> source = numbers(1000, 1), landing(1000);
  Operation all = ends.receiver.receive(std::span(landing), 1);
  Operation sent = ends.sender.send(std::span(source), 1);
  for (std::uint32_t part = 0; part < 4; ++part) EXPECT_EQ(ends.sender.ready(part), Status::ok);
  EXPECT_EQ(ends.job.outcome(all).status, Status::peer_rejected);
  EXPECT_EQ(ends.job.outcome(ends.receiver.when(2)).status, Status::peer_rejected);
}

}  // namespace
}  // namespace brant::test
