// Waits in which nothing happens say what for, and two ends that wait for each other are found out.
#include <chrono>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using namespace std::chrono_literals;
using test::InProcessJob;
using test::JobOptions;

JobOptions told_soon(int ranks, std::chrono::milliseconds after = 20ms) {
  JobOptions options;
  options.ranks = ranks;
  options.runtime.stall_report = after;
  return options;
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

/// What a rank says while it waits for something that does not come.
std::string said_in_a_wait(Runtime& runtime, std::chrono::milliseconds limit) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(runtime.worker().wait_until([] { return false; }, limit), Status::timed_out);
  return testing::internal::GetCapturedStderr();
}

TEST(Stall, is_told_once_with_what_the_process_waits_for) {
  InProcessJob job(told_soon(2));
  Channel channel = Channel::open(job.rank(0), Rank{1}, ChannelId{7});
  double landing[3] = {};
  Operation receive = channel.recv(Buffer(landing, sizeof(landing)));
  const std::string said = said_in_a_wait(job.rank(0), 1s);
  EXPECT_EQ(count(said, " s for message 0 of channel 7 from rank 1 (24 bytes of host memory); nothing has moved for "),
            1u)
      << said;
  EXPECT_EQ(count(said, "rank 0 has waited "), 1u) << said;
  EXPECT_EQ(count(said, "Rank 1 has not opened channel 7"), 1u) << said;
  EXPECT_EQ(count(said, "deadlock"), 0u) << said;
}

TEST(Stall, lasts_as_long_as_the_waits_in_pieces_of_a_program) {
  InProcessJob job(told_soon(2, 50ms));
  Channel channel = Channel::open(job.rank(0), Rank{1}, ChannelId{7});
  Channel other = Channel::open(job.rank(1), Rank{0}, ChannelId{7});
  job.run(20);
  int landing = 0;
  Operation receive = channel.recv(Buffer(&landing, sizeof(landing)));
  testing::internal::CaptureStderr();
  const TimePoint end = Clock::now() + 1s;
  while (Clock::now() < end) static_cast<void>(job.rank(0).worker().wait_until([] { return false; }, 1ms));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count(said, " s for message 0 of channel 7 from rank 1"), 1u) << said;
  EXPECT_EQ(count(said, "has not opened"), 0u) << said;
}

TEST(Stall, is_not_told_where_nothing_waits_or_nobody_wants_to_know) {
  InProcessJob idle(told_soon(1));
  EXPECT_EQ(said_in_a_wait(idle.rank(0), 200ms), "");
  InProcessJob job(told_soon(2, 0ms));
  Channel channel = Channel::open(job.rank(0), Rank{1}, ChannelId{7});
  int landing = 0;
  Operation receive = channel.recv(Buffer(&landing, sizeof(landing)));
  EXPECT_EQ(said_in_a_wait(job.rank(0), 200ms), "");
}

/// Ranks 0 and 1 of a job both stand in a wait without an end, while this runs for `limit`; on a machine that has other
/// things to do, until they have looked at the silence a few times. They sleep up to a millisecond between two looks.
std::string said_in_two_waits(InProcessJob& job, std::chrono::milliseconds limit) {
  constexpr int kRoundsMin = 200;
  testing::internal::CaptureStderr();
  const TimePoint end = Clock::now() + limit;
  int rounds = 0;
  auto inner = [&] {
    job.rank(0).worker().progress();
    return ++rounds >= kRoundsMin && Clock::now() >= end;
  };
  auto outer = [&] {
    EXPECT_EQ(job.rank(1).worker().wait_until(inner), Status::ok);
    return true;
  };
  EXPECT_EQ(job.rank(0).worker().wait_until(outer), Status::ok);
  return testing::internal::GetCapturedStderr();
}

struct BothReceive {
  explicit BothReceive(int ranks)
      : job(told_soon(ranks)),
        left(Channel::open(job.rank(0), Rank{1}, ChannelId{7})),
        right(Channel::open(job.rank(1), Rank{0}, ChannelId{7})) {
    to_left.emplace(Moment::delivered, [this](Op& op) noexcept { return left.post_recv(Buffer(&in[0], 4), op); });
    to_right.emplace(Moment::delivered, [this](Op& op) noexcept { return right.post_recv(Buffer(&in[1], 4), op); });
  }
  InProcessJob job;
  Channel left, right;
  int in[2] = {};
  std::optional<Operation> to_left, to_right;
};

TEST(Stall, of_two_ends_that_both_receive_first_is_a_deadlock) {
  BothReceive pair(2);
  pair.job.run(20);
  const std::string said = said_in_two_waits(pair.job, 500ms);
  EXPECT_EQ(count(said, "deadlock: ranks 1 and 0 wait for each other"), 1u) << said;
  EXPECT_EQ(count(said, "deadlock: ranks 0 and 1 wait for each other"), 1u) << said;
  EXPECT_EQ(count(said, "rank 1 for message 0 of channel 7 from here. One of them must send"), 1u) << said;
  EXPECT_FALSE(pair.to_left->done()) << "it is reported, and nothing is ended";
  const int value = 6;
  Operation send = pair.left.send(ConstBuffer(&value, sizeof(value)));
  EXPECT_TRUE(pair.job.outcome(*pair.to_right).ok());
}

TEST(Stall, of_two_ranks_that_opened_different_channels_says_so) {
  InProcessJob job(told_soon(2));
  Channel left = Channel::open(job.rank(0), Rank{1}, ChannelId{7});
  Channel right = Channel::open(job.rank(1), Rank{0}, ChannelId{8});
  int in[2] = {};
  Operation to_left = left.recv(Buffer(&in[0], 4));
  Operation to_right = right.recv(Buffer(&in[1], 4));
  job.run(20);
  const std::string said = said_in_two_waits(job, 500ms);
  EXPECT_EQ(count(said, "deadlock: ranks 0 and 1 wait for each other"), 1u) << said;
  EXPECT_EQ(count(said, ". Rank 1 has not opened channel 7, or has closed it. Rank 0 has not opened channel 8, or"), 1u)
      << said;
  EXPECT_EQ(count(said, "One of them must send"), 0u) << said;
}

TEST(Stall, is_no_deadlock_while_one_end_waits_for_a_third_as_well) {
  BothReceive pair(3);
  Channel third = Channel::open(pair.job.rank(0), Rank{2}, ChannelId{8});
  int in = 0;
  Operation other = third.recv(Buffer(&in, sizeof(in)));
  pair.job.run(20);
  const std::string said = said_in_two_waits(pair.job, 300ms);
  EXPECT_EQ(count(said, "deadlock"), 0u) << said;
  EXPECT_EQ(count(said, "s for message 0 of channel 7 from rank 0"), 1u) << said;
}

TEST(Stall, of_a_process_that_waits_for_itself_is_a_deadlock) {
  InProcessJob job(told_soon(1));
  Channel one = Channel::open(job.rank(0), Rank{0}, ChannelId{1});
  Channel two = Channel::open(job.rank(0), Rank{0}, ChannelId{1});
  int in = 0;
  Operation receive = one.recv(Buffer(&in, sizeof(in)));
  testing::internal::CaptureStderr();
  const TimePoint end = Clock::now() + 300ms;
  EXPECT_EQ(job.rank(0).worker().wait_until([&] { return Clock::now() >= end; }), Status::ok);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count(said, " s for message 0 of channel 1 from rank 0 (4 bytes of host memory). Nothing of that"), 1u)
      << said;
}

}  // namespace
}  // namespace brant
