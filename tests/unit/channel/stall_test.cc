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
  EXPECT_EQ(count(said, "This process waits for message 0 of channel 7 from rank 1 (24 bytes of host memory, for "), 1u)
      << said;
  EXPECT_EQ(count(said, "nothing has happened for "), 1u) << said;
  EXPECT_EQ(count(said, "deadlock"), 0u) << said;
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

/// Ranks 0 and 1 of a job both stand in a wait without an end, while this runs for `limit`.
std::string said_in_two_waits(InProcessJob& job, std::chrono::milliseconds limit) {
  testing::internal::CaptureStderr();
  const TimePoint end = Clock::now() + limit;
  auto inner = [&] {
    job.rank(0).worker().progress();
    return Clock::now() >= end;
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
  EXPECT_EQ(count(said, "rank 1 for message 0 of channel 7 from here"), 1u) << said;
  EXPECT_FALSE(pair.to_left->done()) << "it is reported, and nothing is ended";
  const int value = 6;
  Operation send = pair.left.send(ConstBuffer(&value, sizeof(value)));
  EXPECT_TRUE(pair.job.outcome(*pair.to_right).ok());
}

TEST(Stall, is_no_deadlock_while_one_end_waits_for_a_third_as_well) {
  BothReceive pair(3);
  Channel third = Channel::open(pair.job.rank(0), Rank{2}, ChannelId{8});
  int in = 0;
  Operation other = third.recv(Buffer(&in, sizeof(in)));
  pair.job.run(20);
  const std::string said = said_in_two_waits(pair.job, 300ms);
  EXPECT_EQ(count(said, "deadlock"), 0u) << said;
  EXPECT_EQ(count(said, "waits for message 0 of channel 7 from rank 0"), 1u) << said;
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
  EXPECT_EQ(count(said, "deadlock: rank 0 waits for itself: for message 0 of channel 1"), 1u) << said;
}

}  // namespace
}  // namespace brant
