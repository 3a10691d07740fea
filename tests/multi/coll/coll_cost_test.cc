// What collectives cost in steady state, counted and not timed: allocations and locks of a member.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/coll/team.h"
#include "support/counted_calls.h"

namespace brant {
namespace {

constexpr std::size_t kCount = 30'000;

void call_all(Worker& worker, Team& team, double* data, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{100}, kCount}) {
      const Buffer buffer(data, count * sizeof(double), MemoryKind::host);
      ASSERT_TRUE(team.run(allreduce(buffer, DataType::f64, ReduceOp::max)).ok());
      ASSERT_TRUE(team.run(broadcast(buffer, 1)).ok());
      const std::int32_t beside[] = {1 - team.rank()};
      const Buffer half(data, count / 2 * sizeof(double), MemoryKind::host);
      const Buffer other(data + kCount, count / 2 * sizeof(double), MemoryKind::host);
      ASSERT_TRUE(team.run(neighbour_alltoall(half, other, {beside, beside})).ok());
      Op op;
      Flag flag;
      op.delivered = flag.sink();
      ASSERT_EQ(team.post(barrier(), op), Status::in_progress);
      while (!flag.done) static_cast<void>(worker.progress());
      ASSERT_TRUE(flag.result.ok());
    }
  }
}

void expect_no_cost(Runtime& runtime, Team& team, double* data) {
  call_all(runtime.worker(), team, data, 200);
  test::start_counting();
  call_all(runtime.worker(), team, data, 200);
  const test::CallCounts cost = test::stop_counting();
  EXPECT_EQ(cost.allocations, 0u);
  EXPECT_EQ(cost.locks, 0u);
}

TEST(CollCost, no_allocation_and_no_lock_in_steady_state) {
  Runtime runtime;
  Team team = Team::world(runtime);
  std::vector<double> data(2 * kCount, 1.0);
  expect_no_cost(runtime, team, data.data());
  // What others read where it is.
  const Memory memory = runtime.allocate(MemoryKind::host, 2 * kCount * sizeof(double));
  auto* const mapped = static_cast<double*>(memory.data());
  std::fill(mapped, mapped + 2 * kCount, 1.0);
  expect_no_cost(runtime, team, mapped);
  const Buffer all(mapped, kCount * sizeof(double), MemoryKind::host);
  ASSERT_TRUE(team.run(allreduce(all, DataType::f64, ReduceOp::max)).ok());
  EXPECT_EQ(team.journal().back().algorithm, "reads");
}

}  // namespace
}  // namespace brant
