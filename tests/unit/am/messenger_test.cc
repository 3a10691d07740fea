#include <gtest/gtest.h>

#include "end.h"
#include "port/wire/faulty/faulty.h"

namespace brant::am {
namespace {

JobOptions reordering(std::uint64_t seed) {
  JobOptions options;
  options.ranks = 3;
  options.network.seed = seed;
  options.network.delay_max = 5;
  options.network.shuffle_pairs = true;
  options.network.shuffle_tags = true;
  return options;
}

TEST(Messenger, messages_of_one_pair_arrive_in_order_whatever_their_size) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    InProcessJob job(reordering(seed));
    End left(job.rank(0)), right(job.rank(1)), third(job.rank(2));
    for (std::uint32_t i = 0; i < 60; ++i) {
      // Every seventh is large: its payload is fetched later than those behind it come.
      ASSERT_EQ(left.send(1, i, i % 7 == 3 ? 100'000 : i * 10), Status::ok);
      ASSERT_EQ(third.send(1, i, 8), Status::ok);
    }
    ASSERT_TRUE(job.run_until([&] { return right.numbers.size() == 120; })) << "seed " << seed;
    std::vector<std::uint32_t> from_left, from_third;
    for (std::size_t i = 0; i < right.numbers.size(); ++i) {
      (right.sources[i] == 0 ? from_left : from_third).push_back(right.numbers[i]);
    }
    EXPECT_EQ(from_left, count_to(60)) << "seed " << seed;
    EXPECT_EQ(from_third, count_to(60)) << "seed " << seed;
    EXPECT_TRUE(right.intact);
    job.run(50);
    EXPECT_EQ(left.messenger().lent(), 0u);
    EXPECT_EQ(right.messenger().lent(), 0u);
  }
}

TEST(Messenger, a_message_to_this_process_is_the_same_block) {
  InProcessJob job;
  End end(job.rank(0));
  end.keep = true;
  ASSERT_EQ(end.send(0, 5, 100), Status::ok);
  EXPECT_EQ(end.numbers, std::vector<std::uint32_t>{5});
  EXPECT_EQ(end.messenger().lent(), 1u);
  EXPECT_EQ(end.messenger().counts().sent, 0u);
}

TEST(Messenger, a_receiver_that_releases_nothing_holds_its_sender_back) {
  InProcessJob job;
  End left(job.rank(0)), right(job.rank(1));
  right.keep = true;
  std::uint32_t sent = 0;
  for (; sent < 4 * Messenger::kWindowUnits; ++sent) {
    const Status status = left.send(1, sent, 8);
    if (status == Status::limit_reached) {
      const std::size_t came = right.numbers.size();
      job.run(50);
      if (right.numbers.size() == came) break;  // not the wire: the window
      --sent;
      continue;
    }
    ASSERT_EQ(status, Status::ok);
  }
  EXPECT_EQ(sent, Messenger::kWindowUnits);
  EXPECT_EQ(left.send(1, sent, 8, Flow::urgent), Status::ok) << "control messages pass";
  right.keep = false;
  right.release_all();
  ASSERT_TRUE(job.run_until([&] { return left.send(1, sent + 1, 8) == Status::ok; }));
  EXPECT_GE(right.messenger().counts().credits, 1u);
}

TEST(Messenger, a_message_larger_than_the_window_passes) {
  InProcessJob job;
  End left(job.rank(0)), right(job.rank(1));
  ASSERT_EQ(left.send(1, 0, std::size_t{40} << 20), Status::ok);
  EXPECT_EQ(left.send(1, 1, 8), Status::limit_reached);
  ASSERT_TRUE(job.run_until([&] { return right.numbers.size() == 1; }));
  ASSERT_TRUE(job.run_until([&] { return left.send(1, 1, 8) == Status::ok; }));
  EXPECT_TRUE(right.intact);
}

TEST(Messenger, what_comes_before_its_service_waits_for_it) {
  InProcessJob job;
  End left(job.rank(0));
  auto& early = job.rank(1).worker().engine().service<Messenger>();  // it is there, and the service is not
  for (std::uint32_t i = 0; i < 20; ++i) ASSERT_EQ(left.send(1, i, i % 2 == 0 ? 8 : 20'000), Status::ok);
  ASSERT_TRUE(job.run_until([&] { return early.counts().received == 20; }));
  {
    End right(job.rank(1));
    EXPECT_EQ(right.numbers, count_to(20));
    EXPECT_TRUE(right.intact);
  }
  // A service that has ended takes nothing any more.
  ASSERT_EQ(left.send(1, 20, 8), Status::ok);
  ASSERT_TRUE(job.run_until([&] { return early.counts().received == 21; }));
  EXPECT_EQ(early.lent(), 0u);
}

TEST(Messenger, repeated_messages_are_dropped_and_late_completions_do_no_harm) {
  JobOptions options;
  options.wrap = [](int, std::unique_ptr<port::Wire> wire) -> std::unique_ptr<port::Wire> {
    port::FaultPolicy policy;
    policy.repeat_rate = 0.5;
    policy.completion_delay = 7;
    return std::make_unique<port::FaultyWire>(std::move(wire), policy);
  };
  InProcessJob job(options);
  End left(job.rank(0)), right(job.rank(1));
  for (std::uint32_t i = 0; i < 200; ++i) ASSERT_EQ(left.send(1, i, 64), Status::ok);
  ASSERT_TRUE(job.run_until([&] { return right.numbers.size() >= 200; }));
  job.run(100);
  EXPECT_EQ(right.numbers, count_to(200));
  EXPECT_GT(right.messenger().counts().duplicates, 0u);
  EXPECT_EQ(left.messenger().lent(), 0u);
}

TEST(Messenger, a_refused_post_leaves_the_message_with_its_sender_and_the_order_whole) {
  JobOptions options;
  options.wrap = [](int rank, std::unique_ptr<port::Wire> wire) -> std::unique_ptr<port::Wire> {
    port::FaultPolicy policy;
    if (rank == 0) {
      policy.rules = {{.point = port::FaultPoint::am_send,
                       .effect = port::FaultEffect::refuse,
                       .rate = 0.3,
                       .status = Status::limit_reached}};
    }
    return std::make_unique<port::FaultyWire>(std::move(wire), policy);
  };
  InProcessJob job(options);
  End left(job.rank(0)), right(job.rank(1));
  for (std::uint32_t i = 0; i < 100;) {
    const Status status = left.send(1, i, 16);
    if (status == Status::ok) ++i;
    job.run(1);
  }
  ASSERT_TRUE(job.run_until([&] { return right.numbers.size() == 100; }));
  EXPECT_EQ(right.numbers, count_to(100));
}

TEST(Messenger, a_failed_send_is_told_as_trouble_with_the_peer) {
  JobOptions options;
  options.wrap = [](int rank, std::unique_ptr<port::Wire> wire) -> std::unique_ptr<port::Wire> {
    port::FaultPolicy policy;
    if (rank == 0) {
      policy.rules = {{.point = port::FaultPoint::am_send,
                       .effect = port::FaultEffect::fail,
                       .nth = 2,
                       .status = Status::io_error}};
    }
    return std::make_unique<port::FaultyWire>(std::move(wire), policy);
  };
  InProcessJob job(options);
  End left(job.rank(0)), right(job.rank(1));
  for (std::uint32_t i = 0; i < 3; ++i) ASSERT_EQ(left.send(1, i, 16), Status::ok);
  ASSERT_TRUE(job.run_until([&] { return !left.troubles.empty(); }));
  EXPECT_EQ(left.troubles[0].first, Rank{1});
  EXPECT_EQ(left.troubles[0].second, Status::io_error);
  EXPECT_EQ(left.send(1, 9, 16), Status::io_error) << "and stays so";
}

TEST(Messenger, a_rank_outside_the_job_is_refused) {
  InProcessJob job;
  End end(job.rank(0));
  EXPECT_EQ(end.send(2, 0, 8), Status::invalid_argument);
  EXPECT_EQ(end.send(-1, 0, 8), Status::invalid_argument);
  EXPECT_EQ(end.messenger().lent(), 0u);
}

}  // namespace
}  // namespace brant::am
