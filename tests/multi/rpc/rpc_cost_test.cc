// What remote calls cost in steady state: allocations and locks, the network library included, counted and not timed;
// and, printed, how long they take.
#include <chrono>
#include <cstdint>
#include <cstdio>

#include <gtest/gtest.h>

#include "brant/ops/rpc.h"
#include "support/counted_calls.h"

namespace brant {
namespace {

constexpr auto kPatience = std::chrono::seconds(30);
constexpr int kRounds = 1000;

std::uint64_t g_sum = 0;
bool g_over = false;
void sum_up(std::uint64_t value) { g_sum += value; }
std::uint64_t give_back(std::uint64_t value) { return value; }

double in_us(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

/// Nothing is kept here when the target is late: how many messages there are at a time is no matter of chance.
void tell(Runtime& runtime, const Rpc& rpc, int calls) {
  for (int i = 0; i < calls; ++i) {
    while (rpc.try_tell<&sum_up>(Rank{1}, std::uint64_t{1}) == Status::limit_reached) runtime.worker().progress();
    if (i % 16 == 0) runtime.worker().progress();
  }
}

TEST(RpcCost, no_allocation_and_no_lock_in_steady_state) {
  Runtime runtime;
  ASSERT_EQ(runtime.size(), 2);
  const Rpc rpc(runtime);
  if (runtime.rank().value == 1) {
    // Here it is counted what running them costs.
    const std::uint64_t begin = kRounds, end = std::uint64_t{2} * kRounds;
    ASSERT_EQ(runtime.worker().wait_until([&] { return g_sum >= begin; }, kPatience), Status::ok);
    test::start_counting();
    const Status status = runtime.worker().wait_until([&] { return g_sum >= end; }, kPatience);
    const test::CallCounts cost = test::stop_counting();
    ASSERT_EQ(status, Status::ok);
    EXPECT_EQ(cost.allocations, 0u);
    EXPECT_EQ(cost.locks, 0u);
    ASSERT_EQ(runtime.worker().wait_until([] { return g_over; }, kPatience), Status::ok);
    return;
  }
  tell(runtime, rpc, kRounds);
  test::start_counting();
  tell(runtime, rpc, kRounds);
  const test::CallCounts told = test::stop_counting();
  EXPECT_EQ(told.allocations, 0u);
  EXPECT_EQ(told.locks, 0u);

  const auto ask = [&](int calls) {
    for (int i = 0; i < calls; ++i) {
      Future<std::uint64_t> answer = rpc.call<&give_back>(Rank{1}, std::uint64_t{7});
      ASSERT_EQ(runtime.wait(answer), 7u);
    }
  };
  ask(kRounds);
  test::start_counting();
  ask(kRounds);
  const test::CallCounts asked = test::stop_counting();
  EXPECT_EQ(asked.allocations, static_cast<std::uint64_t>(kRounds)) << "one for each future";
  EXPECT_EQ(asked.locks, 0u);

  double best = 1e9, best_tell = 1e9;
  for (int turn = 0; turn < 5; ++turn) {
    const auto begin = std::chrono::steady_clock::now();
    ask(kRounds);
    const auto middle = std::chrono::steady_clock::now();
    best = std::min(best, in_us(middle - begin) / kRounds);
    tell(runtime, rpc, 10 * kRounds);
    ask(1);  // behind all that was told
    best_tell = std::min(best_tell, in_us(std::chrono::steady_clock::now() - middle) / (10 * kRounds));
  }
  std::printf("round trip of 8 bytes: %.2f us; told: %.2f million calls a second\n", best, 1 / best_tell);
  Future<void> over = rpc.call<[] { g_over = true; }>(Rank{1});
  runtime.wait(over);
}

}  // namespace
}  // namespace brant
