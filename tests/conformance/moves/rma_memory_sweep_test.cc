// Puts and gets of every path, one allocation after the other failing.
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/rma.h"
#include "conformance/moves/allocation_sweep.h"

namespace brant {
namespace {

using test::Fails;
using test::JobOptions;
using test::pattern;
using test::ScarceJob;
using test::ScarceMemory;
using test::Space;

constexpr std::size_t kBytes = 400'000;  // more than the CPU copies at once

struct Case {
  int owner;  ///< 0; or 1, the rank that puts and gets.
  MemoryKind here;
  MemoryKind there;
  Path path;
};

/// Whether the allocation was come to.
bool play(const Case& of, bool put, Fails fails, unsigned nth) {
  JobOptions options;
  options.gpu = GpuChoice::emulated;
  ScarceJob job(options);
  Space memory(job->rank(of.owner), of.there, kBytes), local(job->rank(1), of.here, kBytes);
  const Segment segment = expose(job->rank(of.owner), memory.whole());
  RemoteSegment there(job->rank(1), Rank{of.owner}, segment.ticket());
  const auto direction = put ? RmaDirection::put : RmaDirection::get;
  if (!there.path_of(of.here, kBytes, direction, {.path = of.path})) return false;
  (put ? local : memory).fill(pattern(kBytes, 1));
  test::Told told;
  const auto post = [&] {
    told.start(Moment::delivered, [&](Op& op) noexcept {
      return put ? there.post_put(0, local.whole(), op, {.path = of.path})
                 : there.post_get(0, local.whole(), op, {.path = of.path});
    });
  };
  ScarceMemory scarce(nth, fails);
  post();
  for (int round = 0; round < 2000 && !told.ended(); ++round) job->run(1);
  scarce.end();
  EXPECT_TRUE(job.run_until([&] { return told.ended(); })) << "never ends";
  job->run(20);
  EXPECT_TRUE(told.status == Status::ok || (scarce.failed() && told.status == Status::no_memory))
      << status_name(told.status);
  EXPECT_EQ(told.times, 1);
  if (testing::Test::HasFailure()) return true;
  if (told.status != Status::ok) post();
  EXPECT_TRUE(job.run_until([&] { return told.ended(); })) << "the next one never ends";
  EXPECT_EQ(told.status, Status::ok) << status_name(told.status);
  EXPECT_EQ((put ? memory : local).image(), pattern(kBytes, 1));
  EXPECT_EQ(there.pending(), 0u);
  return scarce.failed();
}

TEST(RmaMemorySweep, the_caller_is_told_and_the_next_one_arrives) {
  constexpr MemoryKind kKinds[] = {MemoryKind::host, MemoryKind::emulated};
  for (const int owner : {0, 1}) {
    for (const MemoryKind here : kKinds) {
      for (const MemoryKind there : kKinds) {
        for (const Path path : {Path::shm, Path::ucx, Path::copy_engine, Path::staged}) {
          for (const bool put : {true, false}) {
            for (const Fails fails : {Fails::once, Fails::from_then_on}) {
              SCOPED_TRACE(testing::Message()
                           << (put ? "put " : "get ") << path_name(path) << ", " << memory_kind_name(here) << " and "
                           << memory_kind_name(there) << (owner == 1 ? ", own" : "")
                           << (fails == Fails::once ? "" : ", for good"));
              test::sweep_allocations([&](unsigned nth) { return play({owner, here, there, path}, put, fails, nth); });
              if (HasFailure()) return;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace brant
