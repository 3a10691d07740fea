// Receives of small messages in host memory between processes that share memory: little is kept of them, none of those
// whose message has come; and any of them may turn out to wait for something else.
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "core/engine.h"
#include "ops/channel/table.h"
#include "unit/channel/linked_pair.h"

namespace brant {
namespace {

using test::JobOptions;
using test::linked;
using test::Pair;
using test::pattern;

JobOptions by_choice() {
  JobOptions options = linked();
  options.runtime.path = Path::automatic;
  return options;
}

class SmallReceives : public ::testing::Test {
 protected:
  ChannelTable& table(int rank) { return pair_.job.rank(rank).worker().engine().service<ChannelTable>(); }
  Operation receive(int& value) { return pair_.right.recv(Buffer(&value, sizeof(value))); }
  /// A small message, which leaves at once.
  void send(int value) {
    const Operation sent = pair_.left.send(ConstBuffer(&value, sizeof(value)));
    ASSERT_TRUE(sent.done() && sent.result().ok());
  }

  Pair pair_{by_choice()};
};

TEST_F(SmallReceives, take_what_came_first_within_the_post_and_leave_no_record) {
  for (const int value : {1, 2, 3}) send(value);
  pair_.run(1, 5);
  for (const int value : {1, 2, 3}) {
    int got = 0;
    const Operation received = receive(got);
    ASSERT_TRUE(received.done());
    EXPECT_EQ(received.result().bytes, sizeof(int));
    EXPECT_EQ(got, value);
  }
  EXPECT_EQ(table(1).live(), 0u);
  EXPECT_EQ(table(1).traffic().received, 3u);
  EXPECT_EQ(pair_.job.rank(1).worker().engine().counters().path(Path::shm).receives.read(), 3u);
}

TEST_F(SmallReceives, wait_in_records_of_their_own) {
  int first = 0, second = 0;
  Operation one = receive(first), other = receive(second);
  EXPECT_EQ(table(1).live(), 2u);
  EXPECT_EQ(table(1).pools().transfers.lent(), 0u);
  send(7);
  send(8);
  EXPECT_TRUE(pair_.outcome(one).ok());
  EXPECT_TRUE(pair_.outcome(other).ok());
  EXPECT_EQ(first, 7);
  EXPECT_EQ(second, 8);
  EXPECT_EQ(table(1).live(), 0u);
}

TEST_F(SmallReceives, grow_where_their_message_is_offered_and_those_behind_do_not) {
  const auto wanted = pattern(8192, 5);
  Memory source = pair_.job.rank(0).allocate(MemoryKind::host, 65536);  // the receiver can map it
  std::memcpy(source.data(), wanted.data(), wanted.size());
  std::vector<std::byte> landed(wanted.size());
  int before = 0, behind = 0;
  Operation first = receive(before);
  Operation grows = pair_.right.recv(std::span(landed));
  Operation last = receive(behind);
  EXPECT_EQ(table(1).pools().transfers.lent(), 0u);
  send(1);
  Operation offered = pair_.left.send(ConstBuffer(source.data(), wanted.size(), MemoryKind::host));
  EXPECT_FALSE(offered.done());
  send(2);
  EXPECT_TRUE(pair_.outcome(first).ok());
  EXPECT_TRUE(pair_.outcome(grows).ok());
  EXPECT_TRUE(pair_.outcome(last).ok());
  EXPECT_TRUE(pair_.outcome(offered).ok());
  EXPECT_EQ(landed, wanted);
  EXPECT_EQ(before, 1);
  EXPECT_EQ(behind, 2);
  EXPECT_EQ(table(1).live(), 0u);
}

TEST_F(SmallReceives, grow_to_say_that_a_message_is_longer) {
  std::vector<std::byte> small(100);
  Operation truncated = pair_.right.recv(std::span(small));
  const auto large = pattern(400'000, 2);
  Operation send = pair_.left.send(std::span(large));
  const OpResult outcome = pair_.outcome(truncated);
  EXPECT_EQ(outcome.status, Status::truncated);
  EXPECT_EQ(outcome.bytes, large.size());
  EXPECT_EQ(pair_.outcome(send).status, Status::truncated);
}

TEST_F(SmallReceives, give_their_turn_to_the_next_when_they_are_canceled_or_dropped) {
  int first = 0, second = 0, third = 0, last = 0;
  Operation kept = receive(first);
  auto dropped = std::unique_ptr<Operation>(new Operation(receive(second)));
  Operation canceled = receive(third);
  canceled.op().cancel();
  EXPECT_EQ(pair_.outcome(canceled).status, Status::canceled);
  dropped.reset();
  EXPECT_EQ(table(1).live(), 1u);
  for (const int value : {1, 2, 3}) send(value);
  EXPECT_TRUE(pair_.outcome(kept).ok());
  Operation next = receive(second), after = receive(last);
  EXPECT_TRUE(pair_.outcome(next).ok());
  EXPECT_TRUE(pair_.outcome(after).ok());
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
  EXPECT_EQ(last, 3);
  EXPECT_EQ(third, 0);
  EXPECT_EQ(table(1).live(), 0u);
}

TEST_F(SmallReceives, end_with_the_channel) {
  int value = 0;
  Operation waiting = receive(value);
  pair_.right.close();
  EXPECT_EQ(pair_.outcome(waiting).status, Status::canceled);
  EXPECT_EQ(table(1).live(), 0u);
}

TEST_F(SmallReceives, are_named_by_who_waits) {
  int value = 0;
  Operation waiting = receive(value);
  const std::vector<ChannelWait> waits = table(1).waits();
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_FALSE(waits[0].is_send);
  EXPECT_EQ(waits[0].bytes, sizeof(int));
  EXPECT_EQ(waits[0].number, 0u);
  EXPECT_EQ(waits[0].peer, 0);
  waiting.op().cancel();
}

/// The message is not lost: the next receive gets it.
TEST_F(SmallReceives, end_where_no_record_is_left_to_grow_into) {
  int value = 0;
  Operation waiting = receive(value);
  std::vector<std::byte> landing(1 << 20);
  std::vector<std::unique_ptr<Op>> others;
  const auto no_sink = [](void*, const OpResult&) noexcept {};
  Channel busy = Channel::open(pair_.job.rank(1), Rank{0}, ChannelId{8});
  Status posted = Status::in_progress;
  while (posted == Status::in_progress) {
    others.push_back(std::make_unique<Op>());
    others.back()->delivered = {no_sink, nullptr};
    posted = busy.post_recv(std::span(landing), *others.back());
  }
  ASSERT_EQ(posted, Status::limit_reached);
  const auto wanted = pattern(4096, 6);
  Operation longer = pair_.left.send(std::span(wanted));
  EXPECT_EQ(pair_.outcome(waiting).status, Status::limit_reached);
  busy.close();
  pair_.job.run(20);
  std::vector<std::byte> landed(wanted.size());
  Operation next = pair_.right.recv(std::span(landed));
  EXPECT_TRUE(pair_.outcome(next).ok());
  EXPECT_TRUE(pair_.outcome(longer).ok());
  EXPECT_EQ(landed, wanted);
}

}  // namespace
}  // namespace brant
