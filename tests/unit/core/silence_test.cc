#include "core/silence.h"

#include <chrono>
#include <memory>

#include <gtest/gtest.h>

#include "port/boot/single/single_boot.h"
#include "port/wire/loopback/loopback.h"

namespace brant {
namespace {

using namespace std::chrono_literals;

/// Counts how often it was asked what it waits for.
class Listener final : public Service {
 public:
  explicit Listener(int& asked) : asked_(asked) {}
  bool stalled(std::chrono::nanoseconds, bool) noexcept override { return ++asked_ != 0; }

 private:
  int& asked_;
};

class SilenceTest : public testing::Test {
 protected:
  SilenceTest() { services_.get<Listener>(asked_); }

  void pass(std::chrono::nanoseconds time) {
    const TimePoint end = Clock::now() + time;
    while (clock_.look() < end) {
    }
  }

  int asked_ = 0;
  std::unique_ptr<port::Wire> wire_ = port::open_loopback_wire();
  std::unique_ptr<port::Boot> boot_ = port::open_single_boot();
  Counters counters_;
  HostLinks links_{nullptr};
  Leases leases_{*boot_, false, 0ms};
  Peers peers_{boot_->job(), *wire_, links_, leases_, counters_};
  ProgressClock clock_;
  Services services_;
};

TEST_F(SilenceTest, is_reported_once_after_the_patience_and_later_when_it_is_twice_as_long) {
  Silence silence(50ms, clock_, services_, peers_);
  silence.begin();
  silence.report(true);
  EXPECT_EQ(asked_, 0);
  pass(80ms);  // a busy machine may make more of it, but hardly twice as much
  silence.report(true);
  silence.report(true);
  EXPECT_EQ(asked_, 1);
  silence.end();
  silence.begin();
  pass(80ms);
  silence.report(true);
  EXPECT_EQ(asked_, 1) << "not twice as long as the last one";
  pass(400ms);
  silence.report(true);
  EXPECT_EQ(asked_, 2);
}

TEST_F(SilenceTest, is_never_reported_where_the_patience_is_none) {
  Silence silence(0ms, clock_, services_, peers_);
  silence.begin();
  pass(3ms);
  silence.report(true);
  EXPECT_EQ(asked_, 0);
}

TEST_F(SilenceTest, ends_with_events_and_calls_of_user_code_and_not_with_upkeep) {
  Silence silence(2ms, clock_, services_, peers_);
  silence.begin();
  silence.begin_progress();
  silence.end_progress(0, 0);
  EXPECT_TRUE(silence.lasts());
  silence.begin_progress();
  silence.note_upkeep();
  silence.end_progress(1, 0);
  EXPECT_TRUE(silence.lasts());
  silence.begin_progress();
  silence.end_progress(1, 0);
  EXPECT_FALSE(silence.lasts());
  silence.begin();
  silence.note_upkeep();
  silence.end_progress(1, 1);
  EXPECT_FALSE(silence.lasts()) << "user code ran";
}

}  // namespace
}  // namespace brant
