// A worker in the event loop of a program: what its descriptor and `arm` promise.
#include <poll.h>

#include <thread>

#include <gtest/gtest.h>

#include "brant/core/timer.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using namespace std::chrono_literals;

class EventLoop : public ::testing::Test {
 protected:
  [[nodiscard]] bool readable(std::chrono::milliseconds limit) {
    pollfd entry{worker_.fd(), POLLIN, 0};
    return ::poll(&entry, 1, static_cast<int>(limit.count())) == 1;
  }

  test::InProcessJob job_{test::ranks(1)};
  Worker& worker_ = job_.rank(0).worker();
};

TEST_F(EventLoop, is_woken_by_a_call_from_another_thread) {
  while (worker_.progress() != 0) {
  }
  ASSERT_GT(worker_.arm(), 0ns);
  EXPECT_FALSE(readable(0ms));
  bool ran = false;
  std::thread other([&] {
    EXPECT_EQ(worker_.post([](void* flag) noexcept { *static_cast<bool*>(flag) = true; }, &ran), Status::ok);
  });
  EXPECT_TRUE(readable(10s));
  other.join();
  EXPECT_FALSE(ran);
  EXPECT_EQ(worker_.arm(), 0ns) << "it is to be done at once";
  worker_.progress();
  EXPECT_TRUE(ran);
  EXPECT_GT(worker_.arm(), 0ns);
  EXPECT_FALSE(readable(0ms)) << "a wake-up is used once";
}

TEST_F(EventLoop, waits_no_longer_than_to_the_next_timer) {
  const std::chrono::nanoseconds idle = worker_.arm();
  EXPECT_GT(idle, 0ns);
  EXPECT_LE(idle, 100ms) << "for what cannot wake anybody";
  bool over = false;
  const auto nap = [&]() -> Task<void> {
    co_await sleep_for(worker_, 200us);
    over = true;
  };
  Task<void> task = nap();
  task.start();
  EXPECT_LE(worker_.arm(), 200us);
  std::this_thread::sleep_for(300us);
  EXPECT_EQ(worker_.arm(), 0ns);
  worker_.progress();
  EXPECT_TRUE(over);
}

TEST(EventLoopThatMayNotSleep, has_to_go_on_at_once) {
  test::JobOptions options = test::ranks(1);
  options.runtime.sleep = false;
  test::InProcessJob job(options);
  EXPECT_EQ(job.rank(0).worker().arm(), 0ns);
}

}  // namespace
}  // namespace brant
