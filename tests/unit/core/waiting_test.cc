// Progress, sleeping and waiting over parts that nobody else uses.
#include "core/waiting.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "brant/core/timer.h"
#include "core/sleeping.h"
#include "core/turn_taking.h"
#include "port/boot/single/single_boot.h"
#include "port/wire/loopback/loopback.h"

namespace brant {
namespace {

using namespace std::chrono_literals;

struct BusyPoller final : Poller {
  unsigned poll() noexcept override { return 0; }
};

class CoreParts : public testing::Test {
 protected:
  /// An operation whose sink writes down that it was fired.
  void complete(Op& op) {
    op.delivered = {[](void* fired, const OpResult&) noexcept { ++*static_cast<int*>(fired); }, &fired_};
    completions_.complete(op, {});
  }

  int fired_ = 0;
  std::unique_ptr<port::Wire> wire_ = port::open_loopback_wire();
  std::unique_ptr<port::Boot> boot_ = port::open_single_boot();
  Counters counters_;
  Waiter waiter_;
  ProgressClock clock_;
  TimerQueue timers_;
  Pollers pollers_;
  Deferrals deferrals_{clock_};
  Commands commands_{waiter_};
  HeldMessages held_messages_{*wire_};
  HostLinks links_{nullptr};
  Completions completions_{counters_};
  Leases leases_{*boot_, false, 0ms};
  Peers peers_{boot_->job(), *wire_, links_, leases_, counters_};
  Services services_;
  JoinedPeers joined_peers_{boot_->job(), Joining::off, *wire_, held_messages_, clock_, services_, peers_, counters_};
  Silence silence_{0ms, clock_, services_, peers_};
  Progress progress_{*wire_,    links_, pollers_,      commands_,    timers_,  clock_,
                     services_, peers_, joined_peers_, completions_, silence_, counters_};
  Sleeping sleeping_{true, *wire_, links_, pollers_, commands_, timers_, completions_, progress_, waiter_};
  Waiting waiting_{true, clock_, timers_, deferrals_, silence_, progress_, sleeping_, counters_, nullptr};
};

TEST_F(CoreParts, progress_runs_commands_before_it_fires_sinks) {
  struct Seen {
    int& fired;
    int fired_before = -1;
  };
  Op op;
  complete(op);
  Seen seen{fired_};
  const auto look = [](void* context) noexcept {
    auto& one = *static_cast<Seen*>(context);
    one.fired_before = one.fired;
  };
  ASSERT_EQ(commands_.post(look, &seen), Status::ok);
  EXPECT_EQ(progress_.step(), 2u);
  EXPECT_EQ(seen.fired_before, 0);
  EXPECT_EQ(fired_, 1);
  EXPECT_EQ(progress_.step(), 0u);
  EXPECT_EQ(counters_.progress_calls.read(), 2u);
}

TEST_F(CoreParts, moving_fires_no_sink) {
  Op op;
  complete(op);
  progress_.move();
  EXPECT_EQ(fired_, 0);
  EXPECT_TRUE(op.pending());
}

TEST_F(CoreParts, may_sleep_while_nothing_is_to_be_done) {
  EXPECT_TRUE(sleeping_.arm());
  EXPECT_FALSE(sleeping_.process_goes_on());
  EXPECT_EQ(sleeping_.time_left(), 100ms);
}

TEST_F(CoreParts, may_not_sleep_while_a_poller_is_busy) {
  BusyPoller poller;
  pollers_.attach(poller);
  EXPECT_FALSE(sleeping_.arm());
  EXPECT_TRUE(sleeping_.process_goes_on());
  EXPECT_EQ(sleeping_.time_left(), 0ms);
}

TEST_F(CoreParts, may_not_sleep_while_a_sink_is_due) {
  Op op;
  complete(op);
  EXPECT_FALSE(sleeping_.arm());
  EXPECT_TRUE(sleeping_.process_goes_on());
  progress_.step();
  EXPECT_TRUE(sleeping_.arm());
}

TEST_F(CoreParts, sleep_no_longer_than_to_the_next_timer_and_not_at_all_behind_a_command) {
  Timer timer;
  timer.fire = [](Timer&) noexcept {};
  timers_.set(timer, Clock::now() + 20ms);
  EXPECT_TRUE(sleeping_.process_goes_on());
  EXPECT_LE(sleeping_.time_left(), 20ms);
  timers_.clear(timer);
  ASSERT_EQ(commands_.post([](void*) noexcept {}, nullptr), Status::ok);
  EXPECT_EQ(sleeping_.time_left(), 0ms);
}

TEST_F(CoreParts, nobody_sleeps_who_does_not_want_to) {
  Sleeping awake(false, *wire_, links_, pollers_, commands_, timers_, completions_, progress_, waiter_);
  EXPECT_FALSE(awake.arm());
}

TEST_F(CoreParts, a_wait_ends_when_what_it_waits_for_holds_although_it_slept) {
  bool done = false;
  std::thread other([&] {
    ASSERT_EQ(commands_.post([](void* context) noexcept { *static_cast<bool*>(context) = true; }, &done), Status::ok);
  });
  const auto holds = [](void* context) noexcept { return *static_cast<bool*>(context); };
  EXPECT_EQ(waiting_.wait(holds, &done, std::chrono::nanoseconds::max()), Status::ok);
  other.join();
  EXPECT_FALSE(waiting_.for_ever());
}

TEST_F(CoreParts, a_wait_ends_at_its_deadline) {
  const TimePoint begin = Clock::now();
  EXPECT_EQ(waiting_.wait([](void*) noexcept { return false; }, nullptr, 5ms), Status::timed_out);
  EXPECT_GE(Clock::now() - begin, 5ms);
  EXPECT_GT(counters_.sleeps.read(), 0u);
}

TEST_F(CoreParts, only_a_wait_without_a_deadline_is_for_ever) {
  std::vector<bool> for_ever;
  struct Seen {
    Waiting& waiting;
    std::vector<bool>& for_ever;
  } seen{waiting_, for_ever};
  const auto look = [](void* context) noexcept {
    auto& one = *static_cast<Seen*>(context);
    one.for_ever.push_back(one.waiting.for_ever());
    return true;
  };
  EXPECT_EQ(waiting_.wait(look, &seen, 1ms), Status::ok);
  EXPECT_EQ(waiting_.wait(look, &seen, std::chrono::nanoseconds::max()), Status::ok);
  EXPECT_EQ(for_ever, (std::vector<bool>{false, true}));
}

/// A scheduler of two user-level threads: while one waits, the other runs on the same stack above it.
struct TwoThreads {
  Waiting& waiting;
  std::size_t alive = 2;
  unsigned turns = 0;
  bool inside = false;
  bool first_may_go = false;
  std::vector<std::string> story = {};

  void second() {
    story.push_back("second begins");
    const auto ready = [](void* self) noexcept { return static_cast<TwoThreads*>(self)->turns > 3; };
    EXPECT_EQ(waiting.wait(ready, this, 10s), Status::ok);
    story.push_back("second ends");
    first_may_go = true;
    --alive;
  }
  static std::size_t yield(void* scheduler) noexcept {
    auto& self = *static_cast<TwoThreads*>(scheduler);
    ++self.turns;
    if (!self.inside && !self.first_may_go) {
      self.inside = true;
      self.second();
      self.inside = false;
    }
    return self.alive;
  }
};

TEST_F(CoreParts, a_wait_lets_other_user_level_threads_run_which_may_wait_too) {
  TwoThreads threads{waiting_};
  waiting_.yield_to(&TwoThreads::yield, &threads);
  const auto may_go = [](void* self) noexcept { return static_cast<TwoThreads*>(self)->first_may_go; };
  EXPECT_EQ(waiting_.wait(may_go, &threads, std::chrono::nanoseconds::max()), Status::ok);
  EXPECT_EQ(threads.story, (std::vector<std::string>{"second begins", "second ends"}));
  EXPECT_EQ(counters_.sleeps.read(), 0u) << "what others did is seen before a sleep";
  EXPECT_FALSE(waiting_.for_ever());
}

TEST_F(CoreParts, a_wait_does_not_sleep_while_another_user_level_thread_has_work) {
  struct Busy {
    std::size_t alive = 2;  // the other one never waits
    unsigned turns = 0;
  } busy;
  waiting_.yield_to(
      [](void* self) noexcept {
        ++static_cast<Busy*>(self)->turns;
        return static_cast<Busy*>(self)->alive;
      },
      &busy);
  EXPECT_EQ(waiting_.wait([](void*) noexcept { return false; }, nullptr, 20ms), Status::timed_out);
  EXPECT_EQ(counters_.sleeps.read(), 0u);
  EXPECT_GT(busy.turns, 100u);
  busy.alive = 1;
  EXPECT_EQ(waiting_.wait([](void*) noexcept { return false; }, nullptr, 20ms), Status::timed_out);
  EXPECT_GT(counters_.sleeps.read(), 0u);
}

TEST_F(CoreParts, a_quiet_wait_tells_nobody) {
  Op op;
  complete(op);
  EXPECT_FALSE(waiting_.wait_quietly([](void*) noexcept { return false; }, nullptr, 1ms));
  EXPECT_EQ(fired_, 0);
}

/// Another thread, which ends what is awaited in the turn that it is offered, and sleeps ever after.
struct OtherThread final : TurnTaking {
  void offer(bool moved) noexcept override {
    told_of_news = told_of_news || moved;
    if (++offers == ends_it_at) ended = true;
  }
  [[nodiscard]] bool another_sleeps() const noexcept override { return ended; }
  void stand_by(TimePoint) noexcept override { ++stood_by; }
  void begin_sleep() noexcept override {}
  void end_sleep() noexcept override {}

  int ends_it_at = 0;
  int offers = 0;
  int stood_by = 0;
  bool ended = false;
  bool told_of_news = false;
};

bool has_ended(void* other) noexcept { return static_cast<OtherThread*>(other)->ended; }

/// Whoever stood by then would do so until the other thread has something to tell: it does not know of this one.
TEST_F(CoreParts, a_wait_that_another_thread_ended_does_not_stand_by) {
  for (const int turn : {1, 150, 199, 200, 201, 202}) {  // before, at and behind the end of the spinning
    OtherThread other;
    other.ends_it_at = turn;
    waiting_.take_turns(&other);
    EXPECT_EQ(waiting_.wait(has_ended, &other, 10s), Status::ok);
    EXPECT_EQ(other.offers, turn);
    EXPECT_EQ(other.stood_by, 0) << "turn " << turn;
  }
  waiting_.take_turns(nullptr);
}

TEST_F(CoreParts, threads_that_stand_by_hear_of_timers) {
  OtherThread other;
  waiting_.take_turns(&other);
  Timer timer;
  timer.fire = [](Timer&) noexcept {};
  timers_.set(timer, Clock::now());
  EXPECT_EQ(waiting_.wait(has_ended, &other, 5ms), Status::timed_out);
  EXPECT_TRUE(other.told_of_news);
  waiting_.take_turns(nullptr);
}

}  // namespace
}  // namespace brant
