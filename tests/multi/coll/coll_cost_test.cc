// What collectives cost in steady state, counted and not timed: allocations and locks of a member.
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/coll/team.h"
#include "support/counted_calls.h"

namespace brant {
namespace {

void call_all(Worker& worker, Team& team, std::vector<double>& data, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{100}, std::size_t{30'000}}) {
      const Buffer buffer(data.data(), count * sizeof(double), MemoryKind::host);
      ASSERT_TRUE(team.run(allreduce(buffer, DataType::f64, ReduceOp::max)).ok());
      ASSERT_TRUE(team.run(broadcast(buffer, 1)).ok());
      Op op;
      Flag flag;
      op.delivered = flag.sink();
      ASSERT_EQ(team.post(barrier(), op), Status::in_progress);
      while (!flag.done) static_cast<void>(worker.progress());
      ASSERT_TRUE(flag.result.ok());
    }
  }
}

TEST(CollCost, no_allocation_and_no_lock_in_steady_state) {
  Runtime runtime;
  Team team = Team::world(runtime);
  std::vector<double> data(30'000, 1.0);
  call_all(runtime.worker(), team, data, 200);
  test::start_counting();
  call_all(runtime.worker(), team, data, 200);
  const test::CallCounts cost = test::stop_counting();
  EXPECT_EQ(cost.allocations, 0u);
  EXPECT_EQ(cost.locks, 0u);
}

}  // namespace
}  // namespace brant
