#include "core/commands.h"

#include <poll.h>

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace brant {
namespace {

void count(void* counter) noexcept { ++*static_cast<int*>(counter); }

bool rings(const Waiter& waiter) {
  pollfd entry{waiter.fd(), POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

TEST(Commands, of_another_thread_run_here_and_wake_this_one) {
  Waiter waiter;
  Commands commands(waiter);
  int done = 0;
  EXPECT_FALSE(commands.waiting());
  std::thread other([&] { EXPECT_EQ(commands.post(&count, &done), Status::ok); });
  other.join();
  EXPECT_TRUE(rings(waiter));
  EXPECT_TRUE(commands.waiting());
  EXPECT_EQ(done, 0);
  EXPECT_EQ(commands.run(), 1u);
  EXPECT_EQ(done, 1);
  EXPECT_FALSE(commands.waiting());
  EXPECT_EQ(commands.run(), 0u);
}

TEST(Commands, beyond_what_may_wait_are_refused_and_lose_none) {
  Waiter waiter;
  Commands commands(waiter);
  int done = 0;
  int posted = 0;
  while (commands.post(&count, &done) == Status::ok) ++posted;
  EXPECT_EQ(posted, 1024);
  while (commands.run() != 0) {
  }
  EXPECT_EQ(done, posted);
  EXPECT_EQ(commands.post(&count, &done), Status::ok);
}

TEST(Commands, are_run_in_bounded_batches) {
  Waiter waiter;
  Commands commands(waiter);
  int done = 0;
  for (unsigned posted = 0; posted < kDeliverLimit + 1; ++posted) ASSERT_EQ(commands.post(&count, &done), Status::ok);
  EXPECT_LE(commands.run(), kDeliverLimit);
  EXPECT_TRUE(commands.waiting());
}

}  // namespace
}  // namespace brant
