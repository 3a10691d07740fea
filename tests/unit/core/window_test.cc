// A window of many operations: when it has room, when it is empty, what it says of failures, and that it may go at any
// time.
#include "brant/core/window.h"

#include <array>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "brant/ops/rma.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSlots = 4;

/// Two ends in one process, and numbers to send.
class Windows : public ::testing::Test {
 protected:
  Windows() {
    for (std::size_t i = 0; i < sent_.size(); ++i) sent_[i] = static_cast<int>(100 + i);
  }
  Runtime& runtime() { return job_.rank(0); }

  void send(std::size_t number) {
    window_.add(Moment::source_free,
                [&](Op& op) noexcept { return left_.post_send(ConstBuffer(&sent_[number], sizeof(int)), op); });
  }
  void receive(std::size_t number, std::size_t bytes = sizeof(int)) {
    window_.add(Moment::delivered, [&](Op& op) noexcept { return right_.post_recv(Buffer(&got_[number], bytes), op); });
  }
  /// From outside the window.
  void send_alone(std::size_t number, Status expected = Status::ok) {
    Operation sending = left_.send(ConstBuffer(&sent_[number], sizeof(int)));
    EXPECT_EQ(runtime().wait(sending).status, expected);
  }

  std::array<int, 100> sent_{};
  std::array<int, 100> got_{};
  test::InProcessJob job_{test::ranks(1)};
  Channel left_ = Channel::open(job_.rank(0), Rank{0}, ChannelId{1});
  Channel right_ = Channel::open(job_.rank(0), Rank{0}, ChannelId{1});
  Window window_{kSlots};
};

TEST_F(Windows, hold_at_most_their_slots_and_give_them_back) {
  Window sends(1);
  const auto exchange = [&]() -> Task<OpResult> {
    for (std::size_t i = 0; i < got_.size(); ++i) {
      EXPECT_TRUE((co_await window_.slot()).ok());
      EXPECT_LT(window_.pending(), kSlots);
      receive(i);
      EXPECT_LE(window_.pending(), kSlots);
      co_await sends.slot();
      sends.add(Moment::source_free,
                [&](Op& op) noexcept { return left_.post_send(ConstBuffer(&sent_[i], sizeof(int)), op); });
    }
    co_await sends.drain();
    co_return co_await window_.drain();
  };
  const OpResult all = runtime().run(exchange());
  EXPECT_TRUE(all.ok());
  EXPECT_EQ(all.bytes, sizeof(got_));
  EXPECT_EQ(got_, sent_);
  EXPECT_EQ(window_.pending(), 0u);
}

TEST_F(Windows, go_on_when_any_has_ended_not_only_the_oldest) {
  Channel other_left = Channel::open(runtime(), Rank{0}, ChannelId{2});
  Channel other_right = Channel::open(runtime(), Rank{0}, ChannelId{2});
  for (std::size_t i = 0; i + 1 < kSlots; ++i) receive(i);
  int late = 0;
  window_.add(Moment::delivered,
              [&](Op& op) noexcept { return other_right.post_recv(Buffer(&late, sizeof(late)), op); });
  EXPECT_EQ(runtime().wait_for(5ms, window_.slot()).status, Status::timed_out) << "all slots are in use";
  Operation sending = other_left.send(ConstBuffer(&sent_[7], sizeof(int)));
  EXPECT_TRUE(runtime().wait(window_.slot()).ok());
  EXPECT_EQ(late, sent_[7]);
  EXPECT_EQ(window_.pending(), kSlots - 1);
  EXPECT_TRUE(runtime().wait(sending).ok());
}

TEST_F(Windows, are_waited_for_in_plain_code) {
  for (std::size_t i = 0; i < kSlots; ++i) receive(i);
  EXPECT_EQ(runtime().wait_for(5ms, window_.drain()).status, Status::timed_out);
  EXPECT_EQ(window_.pending(), kSlots) << "they go on";
  for (std::size_t i = 0; i < kSlots; ++i) send_alone(i);
  const OpResult all = runtime().wait(window_.drain());
  EXPECT_TRUE(all.ok());
  EXPECT_EQ(all.bytes, kSlots * sizeof(int));
  EXPECT_EQ(runtime().wait(window_.drain()).bytes, 0u) << "a drained window begins anew";
}

TEST_F(Windows, tell_the_first_failure_once_and_can_be_used_again) {
  receive(0, 1);  // too short for what comes
  receive(1);
  send_alone(0, Status::truncated);
  send_alone(1);
  EXPECT_EQ(runtime().wait(window_.drain()).status, Status::truncated);
  EXPECT_EQ(got_[1], sent_[1]) << "the others go on";
  receive(2);
  send_alone(2);
  EXPECT_TRUE(runtime().wait(window_.drain()).ok());
}

TEST_F(Windows, tell_of_a_failure_before_all_have_ended) {
  receive(0, 1);
  receive(1);
  send_alone(0, Status::truncated);
  ASSERT_TRUE(job_.run_until([&] { return window_.pending() == 1; }));
  EXPECT_EQ(runtime().wait(window_.slot()).status, Status::truncated);
}

TEST_F(Windows, count_what_a_post_refuses_as_failed) {
  int calls = 0;
  window_.add(Moment::delivered, [&](Op&) noexcept {
    ++calls;
    return Status::peer_lost;
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(window_.pending(), 0u);
  EXPECT_EQ(window_.result().status, Status::peer_lost);
}

TEST_F(Windows, refuse_what_is_added_without_a_slot) {
  for (std::size_t i = 0; i < kSlots; ++i) receive(i);
  int calls = 0;
  window_.add(Moment::delivered, [&](Op&) noexcept {
    ++calls;
    return Status::ok;
  });
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(window_.result().status, Status::limit_reached);
  EXPECT_EQ(window_.pending(), kSlots);
}

TEST_F(Windows, of_no_slots_are_refused) { EXPECT_THROW(Window(0), Error); }

TEST_F(Windows, withdraw_what_is_under_way) {
  for (std::size_t i = 0; i < kSlots; ++i) receive(i);
  window_.withdraw();
  EXPECT_EQ(window_.pending(), 0u);
  EXPECT_EQ(runtime().wait(window_.drain()).status, Status::canceled);
  job_.run(10);  // the network gives back what it was told to
  for (std::size_t i = 0; i < kSlots; ++i) receive(i);
  for (std::size_t i = 0; i < kSlots; ++i) send_alone(i);
  EXPECT_TRUE(runtime().wait(window_.drain()).ok()) << "the receives that were withdrawn took no message";
  EXPECT_EQ(got_[kSlots - 1], sent_[kSlots - 1]);
}

TEST_F(Windows, that_withdraw_resume_who_waits_for_them) {
  receive(0);
  OpResult outcome;
  Task<void> waiting = [](Window& window, OpResult& into) -> Task<void> { into = co_await window.drain(); }(window_,
                                                                                                            outcome);
  waiting.start();
  EXPECT_FALSE(waiting.finished());
  window_.withdraw();
  EXPECT_TRUE(waiting.finished());
  EXPECT_EQ(outcome.status, Status::canceled);
}

TEST_F(Windows, may_go_with_operations_under_way_and_somebody_waiting) {
  auto window = std::make_unique<Window>(2);
  int lost = -1;
  window->add(Moment::delivered, [&](Op& op) noexcept { return right_.post_recv(Buffer(&lost, sizeof(lost)), op); });
  Task<void> waiting = [](Window& awaited) -> Task<void> { co_await awaited.drain(); }(*window);
  waiting.start();
  window.reset();
  job_.run(10);
  receive(0);
  send_alone(0);
  EXPECT_TRUE(runtime().wait(window_.drain()).ok());
  EXPECT_EQ(got_[0], sent_[0]) << "the receive that went with its window took no message";
  EXPECT_EQ(lost, -1);
  EXPECT_FALSE(waiting.finished());
}

TEST_F(Windows, may_be_destroyed_by_who_is_resumed) {
  auto window = std::make_unique<Window>(1);
  window->add(Moment::delivered, [&](Op& op) noexcept { return right_.post_recv(Buffer(&got_[0], sizeof(int)), op); });
  Task<void> waiting = [](std::unique_ptr<Window>& awaited) -> Task<void> {
    co_await awaited->drain();
    awaited.reset();
  }(window);
  waiting.start();
  send_alone(0);
  ASSERT_TRUE(job_.run_until([&] { return waiting.finished(); }));
  EXPECT_EQ(window, nullptr);
}

TEST_F(Windows, refuse_a_second_coroutine_that_waits) {
  receive(0);
  const auto wait = [](Window& window) -> Task<void> { co_await window.drain(); };
  Task<void> first = wait(window_), second = wait(window_);
  first.start();
  second.start();
  EXPECT_THROW(second.take(), Error);
  send_alone(0);
  EXPECT_TRUE(job_.run_until([&] { return first.finished(); }));
}

TEST_F(Windows, hold_puts_and_gets_beside_messages) {
  std::vector<int> exposed(kSlots, -1);
  Segment segment = expose(runtime(), Buffer(std::span(exposed)));
  RemoteSegment there(runtime(), Rank{0}, segment.ticket());
  const auto put = [&](std::size_t number) {
    window_.add(Moment::delivered, [&](Op& op) noexcept {
      return there.post_put(number * sizeof(int), ConstBuffer(&sent_[number], sizeof(int)), op);
    });
  };
  put(0);
  put(1);
  receive(5);
  send(5);
  EXPECT_TRUE(runtime().wait(window_.drain()).ok());
  int back = 0;
  window_.add(Moment::delivered,
              [&](Op& op) noexcept { return there.post_get(sizeof(int), Buffer(&back, sizeof(back)), op); });
  EXPECT_TRUE(runtime().wait(window_.drain()).ok());
  EXPECT_EQ(back, sent_[1]);
  EXPECT_EQ(got_[5], sent_[5]);
}

TEST(Window, whose_runtime_has_gone_may_be_used_by_another) {
  Window window(1);
  int landing = 0;
  {
    test::InProcessJob job{test::ranks(1)};
    Channel channel = Channel::open(job.rank(0), Rank{0}, ChannelId{1});
    window.add(Moment::delivered,
               [&](Op& op) noexcept { return channel.post_recv(Buffer(&landing, sizeof(landing)), op); });
  }
  window.withdraw();
  EXPECT_FALSE(window.result().ok());
  EXPECT_TRUE(window.slot().done());
}

}  // namespace
}  // namespace brant
