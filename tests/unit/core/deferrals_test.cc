#include "core/deferrals.h"

#include <gtest/gtest.h>

namespace brant {
namespace {

struct Work final : DeferredWork {
  void run_deferred() noexcept override {
    ++done;
    if (again != nullptr) again->defer(*this);
  }
  int done = 0;
  Deferrals* again = nullptr;
};

TEST(Deferrals, are_done_once_however_often_they_were_deferred) {
  const ProgressClock clock;
  Deferrals deferrals(clock);
  Work work;
  deferrals.defer(work);
  deferrals.defer(work);
  deferrals.run();
  deferrals.run();
  EXPECT_EQ(work.done, 1);
}

TEST(Deferrals, that_defer_themselves_again_are_done_next_time) {
  const ProgressClock clock;
  Deferrals deferrals(clock);
  Work work;
  work.again = &deferrals;
  deferrals.defer(work);
  deferrals.run();
  EXPECT_EQ(work.done, 1);
  work.again = nullptr;
  deferrals.run();
  EXPECT_EQ(work.done, 2);
}

TEST(Deferrals, that_were_taken_back_are_not_done) {
  const ProgressClock clock;
  Deferrals deferrals(clock);
  Work work;
  deferrals.defer(work);
  deferrals.take_back(work);
  deferrals.take_back(work);
  deferrals.run();
  EXPECT_EQ(work.done, 0);
}

TEST(Deferrals, wait_for_kernels_that_wait_for_a_process) {
  const ProgressClock clock;
  Deferrals deferrals(clock);
  Work work;
  deferrals.defer(work);
  deferrals.note_waiting_kernels(+1);
  deferrals.run_if_safe();
  EXPECT_EQ(work.done, 0);
  deferrals.note_waiting_kernels(-1);
  deferrals.run_if_safe();
  EXPECT_EQ(work.done, 1);
}

TEST(Deferrals, are_old_some_time_after_the_first_of_them) {
  ProgressClock clock;
  Deferrals deferrals(clock);
  Work work;
  deferrals.defer(work);
  const TimePoint begin = Clock::now();
  while (work.done == 0) deferrals.run_if_old();
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(9)) << "it was done at once";
}

}  // namespace
}  // namespace brant
