// One channel id that goes from one peer to another: each pair of ranks has its own numbers and its own messages.

#include <cstring>

#include <gtest/gtest.h>

#include "core/engine.h"
#include "ops/channel/table.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using test::InProcessJob;
using test::JobOptions;

constexpr ChannelId kId{5};

JobOptions three_ranks(bool links) {
  JobOptions options;
  options.ranks = 3;
  options.links = links;
  return options;
}

class MovedChannel : public testing::TestWithParam<bool> {
 protected:
  Channel open(int rank, int peer) { return Channel::open(job.rank(rank), Rank{peer}, kId); }
  void run(int rank, int rounds) {
    for (int round = 0; round < rounds; ++round) job.rank(rank).worker().progress();
  }
  static Operation send(Channel& channel, const int& value) { return channel.send(ConstBuffer(&value, sizeof(value))); }
  static Operation receive(Channel& channel, int& value) { return channel.recv(Buffer(&value, sizeof(value))); }
  void expect_next(Channel& from, Channel& to) {
    const int value = 42;
    int got = 0;
    Operation received = receive(to, got), sent = send(from, value);
    EXPECT_TRUE(job.outcome(received).ok());
    EXPECT_TRUE(job.outcome(sent).ok());
    EXPECT_EQ(got, 42);
  }

  InProcessJob job{three_ranks(GetParam())};
};
INSTANTIATE_TEST_SUITE_P(OverLinkAndNetwork, MovedChannel, testing::Bool());

TEST_P(MovedChannel, goes_on_with_a_peer_that_had_not_acknowledged_everything) {
  Channel left = open(0, 1), right = open(1, 0);
  job.run(50);
  right.close();
  const int unread = 1;
  Operation sent = send(left, unread);
  run(0, 50);
  left.close();
  run(0, 5);
  open(0, 2).close();
  job.run(50);
  left = open(0, 1);
  right = open(1, 0);
  job.run(50);
  expect_next(left, right);
}

TEST_P(MovedChannel, has_what_its_new_peer_sent_before_it_was_opened) {
  Channel left = open(0, 2), second = open(2, 0);
  job.run(50);
  const int unread = 9, early = 42;
  Operation to_second = send(left, unread);
  run(0, 1);
  left.close();
  second.close();
  run(0, 20);
  Channel first = open(1, 0);
  Operation sent = send(first, early);
  for (int round = 0; round < 20; ++round) {
    run(1, 1);
    run(0, 1);
  }
  left = open(0, 1);
  int got = 0;
  EXPECT_TRUE(job.outcome(receive(left, got)).ok());
  EXPECT_TRUE(job.outcome(sent).ok());
  EXPECT_EQ(got, 42);
}

TEST_P(MovedChannel, does_not_take_the_message_of_one_peer_for_that_of_another) {
  Channel left = open(0, 2), second = open(2, 0);
  job.run(50);
  const int unread = 9, wanted = 42;
  Operation of_second = send(second, unread);
  second.close();
  job.run(50);
  left.close();
  left = open(0, 1);
  Channel first = open(1, 0);
  Operation sent = send(first, wanted);
  int got = 0;
  EXPECT_TRUE(job.outcome(receive(left, got)).ok());
  EXPECT_EQ(got, 42);
}

TEST_P(MovedChannel, hears_the_last_words_of_each_peer) {
  const int value = 42;
  for (const int rank : {1, 2}) {
    Channel channel = open(rank, 0);
    for (int message = 0; message < rank; ++message) EXPECT_TRUE(job.outcome(send(channel, value)).ok());
  }
  job.run(50);
  for (const int rank : {1, 2}) {
    job.rank(rank).worker().engine().shut_down();
    job.run(200);
  }
  for (const int rank : {1, 2}) {
    Channel channel = open(0, rank);
    int got = 0;
    for (int message = 0; message < rank; ++message) EXPECT_TRUE(job.outcome(receive(channel, got)).ok());
    EXPECT_EQ(job.outcome(receive(channel, got)).status, Status::peer_lost);
  }
}

}  // namespace
}  // namespace brant
