// Large messages between processes of one host: lent by their sender, read where they are.
#include <sys/resource.h>

#include <gtest/gtest.h>

#include "end.h"

namespace brant::am {
namespace {

constexpr std::size_t kLarge = 100'000;

JobOptions linked() {
  JobOptions options;
  options.links = true;
  return options;
}

std::uint64_t sends(Runtime& runtime, Path path) {
  return runtime.worker().engine().counters().path(path).sends.read();
}

/// Two ends that have agreed how large messages go: the first one asked.
class MessageLoan : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(left.send(1, 0, kLarge), Status::ok);
    ASSERT_TRUE(job.run_until([&] { return right.numbers.size() == 1; }));
    job.run(20);
    ASSERT_EQ(left.messenger().lent(), 0u);
  }
  void send(std::uint32_t number, std::size_t bytes = kLarge) { ASSERT_EQ(left.send(1, number, bytes), Status::ok); }
  void settle() { job.run(200); }
  [[nodiscard]] std::uint64_t lent_sends() { return sends(job.rank(0), Path::shm); }

  InProcessJob job{linked()};
  End left{job.rank(0)};
  End right{job.rank(1)};
};

TEST_F(MessageLoan, is_not_copied_and_its_block_comes_back_when_it_is_released) {
  right.keep = true;
  const std::uint64_t before = lent_sends();
  send(1);
  ASSERT_TRUE(job.run_until([&] { return right.kept() == 1; }));
  EXPECT_EQ(lent_sends(), before + 1);
  EXPECT_EQ(sends(job.rank(0), Path::ucx), 1u) << "only the very first";
  EXPECT_EQ(left.messenger().lent(), 1u);
  EXPECT_TRUE(right.release_last());
  settle();
  EXPECT_EQ(left.messenger().lent(), 0u);
  EXPECT_EQ(right.messenger().lent(), 0u);
}

TEST_F(MessageLoan, blocks_come_back_in_any_order_and_what_is_kept_stays_whole) {
  constexpr std::uint32_t kCount = 40;
  right.keep = true;
  for (std::uint32_t i = 1; i <= kCount; ++i) send(i, 9000 + 1000 * i);
  ASSERT_TRUE(job.run_until([&] { return right.kept() == kCount; }));
  for (std::uint32_t i = 0; i < kCount / 2; ++i) EXPECT_TRUE(right.release_last());
  settle();
  EXPECT_EQ(left.messenger().lent(), kCount / 2);
  // Their blocks are used again, and not those that are still read.
  right.keep = false;
  for (std::uint32_t i = 100; i < 200; ++i) {
    send(i, 9000 + 1000 * (i % kCount));
    job.run(3);
  }
  ASSERT_TRUE(job.run_until([&] { return right.numbers.size() == 1 + kCount + 100; }));
  while (right.kept() != 0) EXPECT_TRUE(right.release_last());
  settle();
  EXPECT_TRUE(right.intact);
  EXPECT_EQ(left.messenger().lent(), 0u);
  EXPECT_EQ(sends(job.rank(0), Path::ucx), 1u);
}

TEST_F(MessageLoan, keeps_its_turn_among_small_ones) {
  for (std::uint32_t i = 1; i <= 300; ++i) {
    ASSERT_TRUE(job.run_until([&] { return left.send(1, i, i % 3 == 0 ? kLarge : 64) == Status::ok; }));
  }
  ASSERT_TRUE(job.run_until([&] { return right.numbers.size() == 301; }));
  EXPECT_EQ(right.numbers, count_to(301));
  EXPECT_TRUE(right.intact);
}

TEST_F(MessageLoan, counts_against_the_window_until_it_is_released) {
  right.keep = true;
  std::uint32_t sent = 0;
  while (left.send(1, sent + 1, std::size_t{1} << 20) == Status::ok) ++sent;
  EXPECT_EQ(sent, 16u);
  ASSERT_TRUE(job.run_until([&] { return right.kept() == sent; }));
  EXPECT_EQ(left.send(1, 99, kLarge), Status::limit_reached);
  EXPECT_TRUE(right.release_last());
  settle();
  EXPECT_EQ(left.send(1, sent + 1, kLarge), Status::ok) << "the return brought the credit";
  EXPECT_EQ(right.messenger().counts().credits, 0u);
}

TEST_F(MessageLoan, what_finds_no_room_in_the_region_goes_by_the_network) {
  constexpr std::size_t kHuge = std::size_t{10} << 20;
  std::vector<Message*> hoard;  // pages that nobody writes take no memory
  for (int i = 0; i < 20; ++i) hoard.push_back(left.messenger().make(kHuge));
  send(1, kHuge);
  ASSERT_TRUE(job.run_until([&] { return right.numbers.size() == 2; }));
  EXPECT_EQ(sends(job.rank(0), Path::ucx), 2u);
  for (Message* message : hoard) left.messenger().release(*message);
  send(2, kHuge);
  ASSERT_TRUE(job.run_until([&] { return right.numbers.size() == 3; }));
  EXPECT_EQ(sends(job.rank(0), Path::ucx), 2u);
  EXPECT_TRUE(right.intact);
}

TEST_F(MessageLoan, the_dead_return_nothing_and_their_loans_are_taken_back) {
  right.keep = true;
  for (std::uint32_t i = 1; i <= 5; ++i) send(i);
  ASSERT_TRUE(job.run_until([&] { return right.kept() == 5; }));
  EXPECT_EQ(left.messenger().lent(), 5u);
  Engine& engine = job.rank(0).worker().engine();
  engine.peers().suspect(engine.peers().connect(Rank{1}));
  ASSERT_TRUE(job.run_until([&] { return !left.troubles.empty(); }));
  EXPECT_EQ(left.troubles[0], std::pair(Rank{1}, Status::peer_lost));
  EXPECT_EQ(left.messenger().lent(), 0u);
  EXPECT_EQ(left.send(1, 6, kLarge), Status::peer_lost);
}

/// While it lives, this process can open no file.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 3;
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(MessageLoanTerms, a_receiver_that_cannot_map_the_region_gets_large_messages_by_the_network) {
  InProcessJob job(linked());
  End left(job.rank(0)), right(job.rank(1));
  ASSERT_EQ(left.send(1, 0, 8), Status::ok);
  ASSERT_EQ(left.send(1, 1, kLarge), Status::ok);
  {
    const NoMoreFiles no_more;
    ASSERT_TRUE(job.run_until([&] { return right.numbers.size() == 2; }));
    job.run(20);
  }
  for (std::uint32_t i = 2; i < 10; ++i) ASSERT_EQ(left.send(1, i, kLarge), Status::ok);
  ASSERT_TRUE(job.run_until([&] { return right.numbers.size() == 10; }));
  EXPECT_EQ(right.numbers, count_to(10));
  EXPECT_TRUE(right.intact);
  EXPECT_EQ(sends(job.rank(0), Path::ucx), 9u);
}

}  // namespace
}  // namespace brant::am
