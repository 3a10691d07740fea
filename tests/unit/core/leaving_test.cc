// A runtime that leaves before it is destroyed.
#include <algorithm>
#include <span>

#include <gtest/gtest.h>

#include "support/in_process_job.h"

namespace brant {
namespace {

TEST(Leaving, waits_for_the_others_once_and_keeps_memory) {
  int fences = 0;
  int after_leaving = 0;
  {
    test::JobOptions options = test::ranks(2);
    options.fence = [&fences] {
      ++fences;
      return Status::ok;
    };
    test::InProcessJob job(options);
    const int at_start = fences;
    const Memory memory = job.rank(0).allocate(MemoryKind::host, 100'000);
    std::ranges::fill(std::span(memory.as<char>(), memory.bytes()), 'x');
    job.rank(0).leave();
    after_leaving = fences;
    EXPECT_EQ(after_leaving, at_start + 1) << "it waits for the others";
    EXPECT_EQ(std::ranges::count(std::span(memory.as<const char>(), memory.bytes()), 'x'), 100'000);
  }
  EXPECT_EQ(fences, after_leaving + 1) << "rank 1, which has not left before, and rank 0 no more";
}

}  // namespace
}  // namespace brant
