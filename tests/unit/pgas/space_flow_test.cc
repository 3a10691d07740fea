// Copies of the global space that were accepted, and find no room on their way.
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/ops/rpc.h"
#include "brant/pgas.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using test::InProcessJob;

bool all_done(const std::deque<Operation>& operations) {
  for (const Operation& each : operations) {
    if (!each.done()) return false;
  }
  return true;
}

/// More than a device performs at a time.
TEST(SpaceFlow, atomics_that_were_accepted_wait_for_room) {
  constexpr int kMany = 6000;
  InProcessJob job(test::ranks(2, GpuChoice::emulated));
  GlobalSpace owner(job.rank(0)), user(job.rank(1));
  GlobalSegment heap = owner.create(MemoryKind::emulated, 4096);
  const GlobalPtr<std::uint64_t> word = heap.allocate<std::uint64_t>();
  const std::uint64_t zero = 0;
  job.rank(0).copy(Buffer(heap.local(word), 8, MemoryKind::emulated), ConstBuffer(&zero, 8, MemoryKind::host));
  std::deque<Operation> atomics;
  for (int i = 0; i < kMany; ++i) {
    atomics.emplace_back(Moment::delivered, [&](Op& op) noexcept {
      return user.post_atomic(word.as<std::byte>(), Atomic::of<std::uint64_t>(AtomicOp::add, 1), op);
    });
    ASSERT_FALSE(atomics.back().done()) << "its owner is asked first";
  }
  ASSERT_TRUE(job.run_until([&] { return all_done(atomics); }));
  for (const Operation& each : atomics) ASSERT_EQ(each.result().status, Status::ok);
  std::uint64_t seen = 0;
  job.rank(0).copy(Buffer(&seen, 8, MemoryKind::host), ConstBuffer(heap.local(word), 8, MemoryKind::emulated));
  EXPECT_EQ(seen, static_cast<std::uint64_t>(kMany));
}

int g_arrived = 0;
void arrive(const std::vector<int>&) { ++g_arrived; }

TEST(SpaceFlow, a_function_at_the_target_waits_for_room_behind_its_put) {
  InProcessJob job(test::ranks(2));
  GlobalSpace owner(job.rank(0)), user(job.rank(1));
  const Rpc here(job.rank(1)), there(job.rank(0));
  GlobalSegment heap = owner.create(MemoryKind::host, 4096);
  const GlobalPtr<int> at = heap.allocate<int>();
  *heap.local(at) = 0;
  ASSERT_TRUE(job.outcome(user.reach(at)).ok());
  const std::vector<int> much(8192);
  g_arrived = 0;
  int told = 0;
  while (here.tell<&arrive>(Rank{0}, much) == Status::ok) ++told;  // the target makes no progress
  Operation put =
      user.put_value(at, 1, {.at_target = AtTarget::call(here.pack<&arrive>(Rank{0}, std::vector<int>(8192)))});
  EXPECT_FALSE(put.done());
  EXPECT_EQ(*heap.local(at), 1);
  ASSERT_TRUE(job.run_until([&] { return put.done() && g_arrived == told + 1; })) << g_arrived << " of " << told;
  EXPECT_EQ(put.result().status, Status::ok);
}

}  // namespace
}  // namespace brant
