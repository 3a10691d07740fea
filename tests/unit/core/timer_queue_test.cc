#include "core/timer_queue.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace brant {
namespace {

struct Bell : Timer {
  std::vector<const Bell*>* rung = nullptr;
};

void ring(Timer& timer) noexcept {
  auto& bell = static_cast<Bell&>(timer);
  bell.rung->push_back(&bell);
}

/// All that are due: a single run ends early where timers take long.
void run_all(TimerQueue& queue, TimePoint now) {
  while (queue.next() <= now) ASSERT_GT(queue.run(now), 0u);
}

TEST(TimerQueue, fires_in_order_of_time_and_only_what_is_due) {
  std::vector<const Bell*> rung;
  std::vector<Bell> bells(200);
  TimerQueue queue;
  std::mt19937 random(7);
  const TimePoint start{};
  for (Bell& bell : bells) {
    bell.rung = &rung;
    bell.fire = &ring;
    queue.set(bell, start + std::chrono::microseconds(random() % 1000));
  }
  for (std::size_t i = 0; i < bells.size(); i += 3) queue.clear(bells[i]);
  const auto half = start + std::chrono::microseconds(500);
  run_all(queue, half);
  EXPECT_TRUE(std::all_of(rung.begin(), rung.end(), [&](const Bell* bell) { return bell->when <= half; }));
  EXPECT_GT(queue.next(), half);
  run_all(queue, start + std::chrono::microseconds(1000));
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.next(), kNever);
  EXPECT_TRUE(std::is_sorted(rung.begin(), rung.end(), [](const Bell* a, const Bell* b) { return a->when < b->when; }));
  EXPECT_EQ(rung.size(), bells.size() - (bells.size() + 2) / 3);
}

TEST(TimerQueue, a_timer_can_be_moved_and_cleared_twice) {
  std::vector<const Bell*> rung;
  Bell bell;
  bell.rung = &rung;
  bell.fire = &ring;
  TimerQueue queue;
  const TimePoint start{};
  queue.set(bell, start + std::chrono::seconds(1));
  queue.set(bell, start + std::chrono::seconds(2));
  EXPECT_EQ(queue.run(start + std::chrono::seconds(1)), 0u);
  EXPECT_EQ(queue.run(start + std::chrono::seconds(2)), 1u);
  queue.clear(bell);
  queue.clear(bell);
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace brant
