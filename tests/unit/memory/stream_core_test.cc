#include "port/memory/emulated/stream_core.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace brant::port::memory {
namespace {

using namespace std::chrono_literals;

/// A queue with its thread.
class Running {
 public:
  explicit Running(const EmulatedOptions& options = {})
      : core(std::make_shared<StreamCore>(options)), thread_([this] { core->run(); }) {}
  ~Running() {
    core->stop();
    thread_.join();
  }
  const std::shared_ptr<StreamCore> core;

 private:
  std::thread thread_;
};

FillWork fill(std::byte* place, int value) {
  return {.destination = {.address = place, .hold = nullptr}, .value = static_cast<std::byte>(value), .bytes = 1};
}

TEST(StreamCore, numbers_the_work_and_says_when_it_is_done) {
  Running stream;
  std::byte place{};
  for (std::uint64_t expected = 1; expected <= 10; ++expected) {
    std::uint64_t number = 0;
    ASSERT_EQ(stream.core->post(fill(&place, static_cast<int>(expected)), &number), Status::ok);
    EXPECT_EQ(number, expected);
  }
  EXPECT_EQ(stream.core->drain(), Status::ok);
  EXPECT_TRUE(stream.core->reached(10));
  EXPECT_FALSE(stream.core->reached(11));
  EXPECT_EQ(stream.core->poll(), Status::ok);
  EXPECT_EQ(place, std::byte{10});
}

TEST(StreamCore, refuses_work_after_its_end) {
  const auto core = std::make_shared<StreamCore>(EmulatedOptions{});
  std::thread thread([core] { core->run(); });
  core->stop();
  EXPECT_TRUE(core->wait_ended(5s));
  thread.join();
  std::byte place{};
  EXPECT_EQ(core->post(fill(&place, 1)), Status::shutting_down);
  EXPECT_EQ(core->poll(), Status::ok);  // nothing was lost
}

TEST(StreamCore, work_that_was_discarded_is_reported) {
  const auto core = std::make_shared<StreamCore>(EmulatedOptions{});
  std::byte place{};
  std::uint64_t number = 0;
  ASSERT_EQ(core->post(fill(&place, 1), &number), Status::ok);
  core->stop();
  std::thread([core] { core->run(); }).join();
  EXPECT_EQ(core->poll(), Status::shutting_down);
  EXPECT_EQ(core->poll(number), Status::shutting_down);
  EXPECT_EQ(core->drain(), Status::shutting_down);
  EXPECT_EQ(place, std::byte{0});
}

TEST(StreamCore, a_full_queue_times_out_without_a_thread_to_empty_it) {
  const auto core = std::make_shared<StreamCore>(EmulatedOptions{.queue_depth = 2, .full_wait_ms = 20});
  std::byte place{};
  EXPECT_EQ(core->post(fill(&place, 1)), Status::ok);
  EXPECT_EQ(core->post(fill(&place, 2)), Status::ok);
  EXPECT_EQ(core->post(fill(&place, 3)), Status::limit_reached);
  EXPECT_EQ(core->poll(), Status::in_progress);
  EXPECT_FALSE(core->drain_for(20ms));
}

TEST(StreamCore, waits_for_a_point_of_another_stream) {
  Running first;
  Running second;
  std::byte place{};
  const auto gate = std::make_shared<StreamCore>(EmulatedOptions{});  // runs only when we say so
  std::uint64_t number = 0;
  ASSERT_EQ(gate->post(fill(&place, 1), &number), Status::ok);
  ASSERT_EQ(first.core->post(WaitWork{{.stream = gate, .sequence = number}}), Status::ok);
  ASSERT_EQ(first.core->post(fill(&place, 2)), Status::ok);
  EXPECT_FALSE(first.core->drain_for(50ms));
  std::thread runner([gate] { gate->run(); });
  EXPECT_EQ(first.core->drain(), Status::ok);
  EXPECT_EQ(place, std::byte{2});
  gate->stop();
  runner.join();
}

TEST(StreamCore, stopping_ends_a_wait_that_would_never_end) {
  const auto never = std::make_shared<StreamCore>(EmulatedOptions{});
  std::byte place{};
  std::uint64_t number = 0;
  ASSERT_EQ(never->post(fill(&place, 1), &number), Status::ok);
  const auto start = std::chrono::steady_clock::now();
  {
    Running stream;
    ASSERT_EQ(stream.core->post(WaitWork{{.stream = never, .sequence = number}}), Status::ok);
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(EventState, of_two_records_the_later_one_counts) {
  EventState event(true);
  const std::uint64_t first = event.next_ticket();
  const std::uint64_t second = event.next_ticket();
  EXPECT_LT(first, second);
  EventState::Clock::time_point time;
  event.set_latest({.stream = nullptr, .sequence = 2, .ticket = second});
  event.stamp(first);
  EXPECT_FALSE(event.time_of_latest(time));
  event.stamp(second);
  ASSERT_TRUE(event.time_of_latest(time));
  const auto stamped = time;
  event.stamp(first);  // a slower stream reaches its older record now
  ASSERT_TRUE(event.time_of_latest(time));
  EXPECT_EQ(time, stamped);
}

}  // namespace
}  // namespace brant::port::memory
