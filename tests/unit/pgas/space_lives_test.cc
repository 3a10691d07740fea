// Spaces that come late, go, and are made anew, while others know of their segments.
#include <memory>
#include <optional>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/pgas.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using test::InProcessJob;

void progress(Runtime& runtime, int turns) {
  for (int turn = 0; turn < turns; ++turn) static_cast<void>(runtime.worker().progress());
}

TEST(SpaceLives, a_pointer_of_a_space_that_has_gone_finds_nothing_in_the_next_one) {
  InProcessJob job(test::ranks(2));
  std::optional<GlobalSpace> user(std::in_place, job.rank(1));
  GlobalPtr<int> stale;
  {
    GlobalSpace first(job.rank(0));
    GlobalSegment heap = first.create(MemoryKind::host, 4096);
    stale = heap.allocate<int>();
    EXPECT_TRUE(job.outcome(user->put_value(stale, 1)).ok());
    heap = {};
    job.run(300);
  }
  GlobalSpace second(job.rank(0));
  GlobalSegment heap = second.create(MemoryKind::host, 4096);
  const GlobalPtr<int> fresh = heap.allocate<int>();
  *heap.local(fresh) = 77;
  EXPECT_FALSE(stale == fresh);
  EXPECT_EQ(job.outcome(user->put_value(stale, 13)).status, Status::not_found);
  EXPECT_EQ(*heap.local(fresh), 77);
  user.reset();  // so that the second one need not wait for it
}

TEST(SpaceLives, a_publication_waits_for_the_space_of_its_receiver) {
  InProcessJob job(test::ranks(2));
  GlobalSpace owner(job.rank(0));
  GlobalSegment heap = owner.create(MemoryKind::host, 4096), retired = owner.create(MemoryKind::host, 4096);
  const GlobalPtr<int> at = heap.allocate<int>();
  for (const bool is_first : {true, false}) {
    ASSERT_EQ(heap.publish_to_all(), Status::ok);
    if (!is_first) {
      ASSERT_EQ(retired.publish(Rank{1}), Status::ok);
      job.run(100);
      const Future<void> gone = retired.retire();
      EXPECT_TRUE(job.run_until([&] {
        job.rank(0).tidy();
        return gone.ready();
      })) << "who has had a space lets go of it";
    }
    job.run(100);
    const auto user = std::make_unique<GlobalSpace>(job.rank(1));
    progress(job.rank(1), 300);
    const int value = is_first ? 1 : 2;
    const Operation put = user->put_value(at, value);
    progress(job.rank(1), 20'000);
    EXPECT_TRUE(put.done()) << "its owner makes no progress meanwhile";
    EXPECT_TRUE(job.outcome(put).ok());
    EXPECT_EQ(*heap.local(at), value);
  }
}

}  // namespace
}  // namespace brant
