#include "models/mpi/ranks/rank_scheduler.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "support/effort.h"

namespace brant::mpi {
namespace {

using Body = std::function<int(int slot)>;

/// A program of functions of this test.
class Functions final : public RankProgram {
 public:
  explicit Functions(Body body) : body_(std::move(body)) {}
  int run(int slot) noexcept override { return body_(slot); }
  void resume(int slot) noexcept override { turns.push_back(slot); }
  void suspend(int slot) noexcept override { turns.push_back(-1 - slot); }

  std::vector<int> turns;

 private:
  Body body_;
};

constexpr std::size_t kStack = std::size_t{256} * 1024;

template <typename Done>
void wait(RankScheduler& ranks, Done done) {
  ranks.wait([](void* context) noexcept { return (*static_cast<Done*>(context))(); }, &done);
}

TEST(RankSchedulerTest, every_rank_runs_once_and_knows_its_number) {
  RankScheduler* ranks = nullptr;
  std::vector<int> seen;
  Functions program([&](int slot) {
    EXPECT_EQ(ranks->current(), slot);
    EXPECT_TRUE(ranks->in_rank());
    seen.push_back(slot);
    return 0;
  });
  RankScheduler scheduler(program, 3, kStack);
  ranks = &scheduler;
  EXPECT_EQ(scheduler.run(), 0);
  EXPECT_EQ(seen, (std::vector{0, 1, 2}));
  EXPECT_EQ(program.turns, (std::vector{0, -1, 1, -2, 2, -3}));
  EXPECT_FALSE(scheduler.in_rank());
}

TEST(RankSchedulerTest, ranks_that_yield_take_turns) {
  RankScheduler* ranks = nullptr;
  std::vector<int> order;
  Functions program([&](int slot) {
    for (int turn = 0; turn < 3; ++turn) {
      order.push_back(slot);
      ranks->yield();
    }
    return 0;
  });
  RankScheduler scheduler(program, 2, kStack);
  ranks = &scheduler;
  EXPECT_EQ(scheduler.run(), 0);
  EXPECT_EQ(order, (std::vector{0, 1, 0, 1, 0, 1}));
}

TEST(RankSchedulerTest, who_waits_goes_on_once_what_it_waits_for_holds) {
  RankScheduler* ranks = nullptr;
  int next = 3;
  std::vector<int> order;
  Functions program([&](int slot) {
    wait(*ranks, [&, slot]() noexcept { return next == slot; });
    order.push_back(slot);
    --next;
    return 0;
  });
  RankScheduler scheduler(program, 4, kStack);
  ranks = &scheduler;
  EXPECT_EQ(scheduler.run(), 0);
  EXPECT_EQ(order, (std::vector{3, 2, 1, 0}));
}

TEST(RankSchedulerTest, whoever_is_asked_whether_its_wait_is_over_is_the_current_one) {
  RankScheduler* ranks = nullptr;
  bool open = false;
  bool right = true;
  Functions program([&](int slot) {
    if (slot == 0) {
      ranks->yield();
      open = true;
      return 0;
    }
    wait(*ranks, [&, slot]() noexcept {
      right = right && ranks->current() == slot;
      return open;
    });
    return 0;
  });
  RankScheduler scheduler(program, 3, kStack);
  ranks = &scheduler;
  EXPECT_EQ(scheduler.run(), 0);
  EXPECT_TRUE(right);
}

TEST(RankSchedulerTest, errno_belongs_to_a_rank) {
  RankScheduler* ranks = nullptr;
  std::vector<int> kept;
  Functions program([&](int slot) {
    errno = 10 + slot;
    ranks->yield();
    kept.push_back(errno);
    return 0;
  });
  RankScheduler scheduler(program, 2, kStack);
  ranks = &scheduler;
  errno = 7;
  EXPECT_EQ(scheduler.run(), 0);
  EXPECT_EQ(errno, 7);
  EXPECT_EQ(kept, (std::vector{10, 11}));
}

TEST(RankSchedulerTest, a_rank_that_ends_with_an_error_ends_all) {
  RankScheduler* ranks = nullptr;
  int ended = 0;
  Functions program([&](int slot) {
    if (slot == 1) return 5;
    for (int turn = 0; turn < 3; ++turn) ranks->yield();
    ++ended;
    return 0;
  });
  RankScheduler scheduler(program, 3, kStack);
  ranks = &scheduler;
  EXPECT_EQ(scheduler.run(), 5);
  EXPECT_EQ(ended, 0);
}

/// Frames that the compiler does not fold.
// NOLINTNEXTLINE(misc-no-recursion)
int fill_stack(volatile char* above, int depth) {
  volatile char frame[4096] = {};
  frame[depth % 4096] = above[0];
  return depth == 0 ? frame[0] : fill_stack(frame, depth - 1) + frame[1];
}

TEST(RankSchedulerDeathTest, a_stack_that_overflows_overwrites_nothing) {
  volatile char top[1] = {};
  Functions program([&](int) { return fill_stack(top, 100'000'000); });
  RankScheduler scheduler(program, 2, kStack);
  EXPECT_DEATH(static_cast<void>(scheduler.run()), "");
}

TEST(RankSchedulerTest, prints_what_a_turn_costs) {
  constexpr int kTurns = brant::test::effort(200'000, 10'000);
  for (const int count : {2, 1000}) {
    RankScheduler* ranks = nullptr;
    const int turns = kTurns / count;
    Functions program([&](int) {
      for (int turn = 0; turn < turns; ++turn) ranks->yield();
      return 0;
    });
    program.turns.reserve(std::size_t{4} * kTurns);
    RankScheduler scheduler(program, count, kStack);
    ranks = &scheduler;
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(scheduler.run(), 0);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    std::printf("%d ranks: %.1f ns a turn\n", count, took.count() / (static_cast<double>(turns) * count));
  }
}

}  // namespace
}  // namespace brant::mpi
