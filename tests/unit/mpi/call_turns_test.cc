// Threads that use one worker in turns: nobody is in a call with another, and whoever waits hears of what others do.
#include "models/mpi/call_turns.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/engine.h"
#include "support/in_process_job.h"

namespace brant::mpi {
namespace {

using namespace std::chrono_literals;

test::JobOptions one_rank() {
  test::JobOptions options;
  options.ranks = 1;
  return options;
}

class Turns : public testing::Test {
 protected:
  Turns() { turns_.attach(&engine()); }
  ~Turns() override { turns_.attach(nullptr); }

  Engine& engine() { return job_.rank(0).worker().engine(); }
  template <typename Body>
  static void in_threads(int count, const Body& body) {
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(count));
    for (int t = 0; t < count; ++t) threads.emplace_back([&body, t] { body(t); });
    for (std::thread& thread : threads) thread.join();
  }
  /// As a call of MPI that waits until `word` has this value.
  void wait_for(const int& word, int value) {
    struct Awaited {
      const int& word;
      int value;
    } awaited{word, value};
    turns_.enter();
    const Status status = engine().waiting().wait(
        [](void* context) noexcept {
          const auto& self = *static_cast<Awaited*>(context);
          return self.word >= self.value;
        },
        &awaited, 20s);
    turns_.leave();
    EXPECT_EQ(status, Status::ok);
  }

  test::InProcessJob job_{one_rank()};
  CallTurns turns_;
};

TEST_F(Turns, know_whether_other_threads_are_in_calls) {
  int word = 0;
  turns_.enter();
  turns_.enter();  // a call of a function that a call calls
  EXPECT_FALSE(turns_.others_wait());
  turns_.leave();
  turns_.leave();
  std::thread waiting([&] { wait_for(word, 1); });
  const auto sees_it = [&] {
    turns_.enter();
    const bool seen = turns_.others_wait();
    turns_.leave();
    return seen;
  };
  for (int look = 0; look < 10'000 && !sees_it(); ++look) std::this_thread::sleep_for(1ms);
  turns_.enter();
  EXPECT_TRUE(turns_.others_wait());
  word = 1;
  turns_.leave();
  waiting.join();
  EXPECT_FALSE(sees_it());
}

TEST_F(Turns, may_be_left_for_what_blocks_elsewhere) {
  int others = 0;
  EXPECT_FALSE(turns_.step_out()) << "this thread is in no call";
  turns_.enter();
  turns_.enter();
  EXPECT_FALSE(turns_.step_out()) << "the call that it is within is in the middle of its work";
  turns_.leave();
  ASSERT_TRUE(turns_.step_out());
  std::thread other([&] {
    turns_.enter();
    ++others;
    EXPECT_TRUE(turns_.others_wait());
    turns_.leave();
  });
  other.join();  // it would wait for ever for the turn of this thread
  turns_.step_in();
  EXPECT_EQ(others, 1);
  EXPECT_FALSE(turns_.others_wait());
  turns_.leave();
  in_threads(1, [&](int) {
    turns_.enter();
    turns_.leave();
  });
}

TEST_F(Turns, are_of_one_thread_at_a_time) {
  int inside = 0;
  std::size_t calls = 0;
  in_threads(4, [&](int) {
    for (int i = 0; i < 2000; ++i) {
      turns_.enter();
      EXPECT_EQ(++inside, 1);
      ++calls;
      turns_.enter();  // a function of the program calls MPI again
      turns_.offer(true);
      turns_.leave();
      --inside;
      turns_.leave();
    }
  });
  EXPECT_EQ(calls, 8000u);
}

TEST_F(Turns, go_to_others_while_one_waits) {
  int word = 0;
  in_threads(4, [&](int t) {
    for (int round = 0; round < 50; ++round) {
      wait_for(word, round * 4 + t);
      turns_.enter();
      ++word;
      turns_.leave();
    }
  });
  EXPECT_EQ(word, 200);
}

TEST_F(Turns, of_those_that_sleep_come_soon_after_what_they_wait_for) {
  using Clock = std::chrono::steady_clock;
  int word = 0;
  std::atomic<Clock::rep> set_at = 0;
  std::atomic<Clock::rep> longest = 0;
  std::vector<std::thread> sleepers;
  sleepers.reserve(3);
  for (int t = 0; t < 3; ++t) {
    sleepers.emplace_back([&] {
      for (int round = 1; round <= 5; ++round) {
        wait_for(word, round);
        const Clock::rep late = Clock::now().time_since_epoch().count() - set_at.load();
        if (late > longest) longest = late;
      }
    });
  }
  for (int round = 1; round <= 5; ++round) {
    std::this_thread::sleep_for(60ms);  // they sleep by then
    turns_.enter();
    set_at = Clock::now().time_since_epoch().count();
    word = round;
    turns_.leave();
  }
  for (std::thread& sleeper : sleepers) sleeper.join();
  EXPECT_LT(Clock::duration(longest), 90ms) << "they slept on until something else woke them";
}

TEST_F(Turns, of_a_nested_call_are_kept_while_it_waits) {
  std::atomic<bool> is_inside = false;
  std::thread other([&] {
    while (!is_inside) std::this_thread::yield();
    turns_.enter();
    EXPECT_FALSE(is_inside);
    turns_.leave();
  });
  turns_.enter();
  is_inside = true;
  turns_.enter();
  static_cast<void>(engine().waiting().wait([](void*) noexcept { return false; }, nullptr, 20ms));
  turns_.leave();
  is_inside = false;
  turns_.leave();
  other.join();
}

}  // namespace
}  // namespace brant::mpi
