// What becomes of a channel when the program at its other end has ended.
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "core/engine.h"
#include "ops/channel/table.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using test::InProcessJob;
using test::JobOptions;

/// Two ranks; the program of the first can end.
struct Ending {
  explicit Ending(const JobOptions& options = {}) : job(options) {}

  Channel open(int rank, std::uint32_t id) { return Channel::open(job.rank(rank), Rank{1 - rank}, ChannelId{id}); }
  /// As at the end of a program: its channels are closed, and `Runtime` goes.
  void end() {
    job.rank(0).worker().engine().shut_down();
    job.run(200);
  }

  InProcessJob job;
};

Status status_of(InProcessJob& job, const Operation& operation) { return job.outcome(operation).status; }

TEST(LastWords, end_the_receives_that_wait_for_what_was_never_sent) {
  Ending ending;
  Channel left = ending.open(0, 7), right = ending.open(1, 7);
  int value = 3, got[3] = {};
  Operation first = right.recv(Buffer(&got[0], sizeof(int)));
  Operation second = right.recv(Buffer(&got[1], sizeof(int)));
  EXPECT_TRUE(ending.job.outcome(left.send(ConstBuffer(&value, sizeof(int)))).ok());
  left.close();
  ending.end();
  EXPECT_EQ(status_of(ending.job, first), Status::ok);
  EXPECT_EQ(status_of(ending.job, second), Status::peer_lost);
  Operation late = right.recv(Buffer(&got[2], sizeof(int)));
  EXPECT_EQ(status_of(ending.job, late), Status::peer_lost);
  EXPECT_EQ(got[0], 3);
}

TEST(LastWords, take_nothing_away_that_was_sent) {
  constexpr std::size_t kLarge = std::size_t{1} << 20;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    JobOptions options;
    options.network.seed = seed;
    options.network.delay_max = 5;
    Ending ending(options);
    Channel left = ending.open(0, 7), right = ending.open(1, 7);
    const std::vector<std::byte> large(kLarge, std::byte{5});
    std::vector<std::byte> landed(kLarge);
    const int small = 9;
    int got = 0;
    Operation sent_small = left.send(ConstBuffer(&small, sizeof(small)));
    Operation sent_large = left.send(ConstBuffer(large.data(), large.size()));
    ending.end();
    Operation first = right.recv(Buffer(&got, sizeof(got)));
    Operation second = right.recv(Buffer(landed.data(), landed.size()));
    Operation third = right.recv(Buffer(landed.data(), landed.size()));
    EXPECT_EQ(status_of(ending.job, first), Status::ok);
    EXPECT_EQ(status_of(ending.job, second), Status::ok);
    EXPECT_EQ(status_of(ending.job, third), Status::peer_lost);
    EXPECT_EQ(got, 9);
    EXPECT_EQ(landed, large);
  }
}

TEST(LastWords, are_not_needed_of_ends_that_were_forgotten_when_all_they_sent_was_received) {
  for (const bool links : {false, true}) {
    JobOptions options;
    options.links = links;
    Ending ending(options);
    Channel left = ending.open(0, 7), right = ending.open(1, 7);
    int value = 3, got[2] = {};
    Operation first = right.recv(Buffer(&got[0], sizeof(int)));
    EXPECT_TRUE(ending.job.outcome(left.send(ConstBuffer(&value, sizeof(int)))).ok());
    left.close();
    EXPECT_EQ(status_of(ending.job, first), Status::ok);
    ending.job.run(10);
    EXPECT_EQ(ending.job.rank(0).worker().engine().service<ChannelTable>().ends_in_use(), 0u);
    Operation second = right.recv(Buffer(&got[1], sizeof(int)));
    ending.end();
    EXPECT_EQ(status_of(ending.job, second), Status::peer_lost);
  }
}

TEST(LastWords, count_for_ends_that_are_opened_later) {
  Ending ending;
  int value = 4, got = 0;
  {
    Channel left = ending.open(0, 9);
    EXPECT_TRUE(ending.job.outcome(left.send(ConstBuffer(&value, sizeof(int)))).ok());
  }
  Channel other = ending.open(1, 8);  // whom nobody knows is told nothing
  ending.end();
  Channel right = ending.open(1, 9);
  EXPECT_EQ(status_of(ending.job, right.recv(Buffer(&got, sizeof(int)))), Status::ok);
  EXPECT_EQ(status_of(ending.job, right.recv(Buffer(&got, sizeof(int)))), Status::peer_lost);
  EXPECT_EQ(got, 4);
}

TEST(LastWords, come_from_a_program_that_never_opened_its_end) {
  Ending ending;
  Channel right = ending.open(1, 7);
  int got = 0;
  Operation receive = right.recv(Buffer(&got, sizeof(int)));
  ending.job.run(10);
  ending.end();
  EXPECT_EQ(status_of(ending.job, receive), Status::peer_lost);
}

TEST(LastWords, come_also_when_the_end_is_opened_after_them) {
  Ending ending;
  ending.end();
  Channel right = ending.open(1, 7);
  int got = 0;
  Operation receive = right.recv(Buffer(&got, sizeof(int)));
  EXPECT_EQ(status_of(ending.job, receive), Status::peer_lost);
}

TEST(LastWords, end_sends_that_nobody_will_receive) {
  Ending ending;
  Channel left = ending.open(0, 7), right = ending.open(1, 7);
  int value = 1;
  Operation unheard = right.send(ConstBuffer(&value, sizeof(int)), Moment::delivered);
  left.close();
  ending.end();
  EXPECT_EQ(status_of(ending.job, unheard), Status::peer_lost);
  Op late;
  EXPECT_EQ(right.post_send(ConstBuffer(&value, sizeof(int)), late), Status::peer_lost);
}

}  // namespace
}  // namespace brant
