// A call in steady state allocates nothing: neither between processes nor within one. Counted in this process as a
// whole, the network library included.
#include <array>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "brant/chare.h"
#include "support/counted_calls.h"
#include "support/job_runtime.h"

namespace brant {
namespace {

/// Once for each of the two. Before the last hit: the other one's answer to `allocations` is no steady state.
bool nears_its_end(std::uint64_t left) { return left == 100 || left == 101; }

class Ball : public Chare<Ball> {
 public:
  void meet(Element<Ball> partner) { partner_ = partner; }
  void hit(std::uint64_t left, std::span<const double> load) {
    if (left == 20'000) test::start_counting();  // both ends are warm
    if (nears_its_end(left)) counts_ = test::stop_counting();
    if (left != 0) partner_.call<&Ball::hit>(left - 1, load);
    if (left <= 1) done_.deliver();
  }
  Task<std::uint64_t> allocations() {
    co_await done_.future();
    co_return counts_.allocations;
  }

 private:
  Element<Ball> partner_;
  Promise<> done_;
  test::CallCounts counts_;
};

Task<void> count(Chares& chares, Placement placement, std::size_t doubles) {
  const auto balls = create_array<Ball>(chares, 2, placement);
  balls[0].call<&Ball::meet>(balls[1]);
  balls[1].call<&Ball::meet>(balls[0]);
  auto first = balls[0].ask<&Ball::allocations>();
  auto second = balls[1].ask<&Ball::allocations>();
  const std::vector<double> load(doubles, 1.0);
  balls[0].call<&Ball::hit>(std::uint64_t{40'000}, load);
  const std::uint64_t here = co_await first;
  EXPECT_EQ(here, 0u) << doubles << " doubles";
  const std::uint64_t there = co_await second;
  EXPECT_EQ(there, 0u) << doubles << " doubles";
}
/// The same with a data argument and a post entry.
class DataBall : public Chare<DataBall> {
 public:
  void meet(Element<DataBall> partner) { partner_ = partner; }
  void hit(DeviceData load, std::uint64_t left) {
    if (left == 20'000) test::start_counting();
    if (nears_its_end(left)) counts_ = test::stop_counting();
    if (left != 0) partner_.call<&DataBall::hit>(device(load), left - 1);
    if (left <= 1) done_.deliver();
  }
  Buffer post(Post<&DataBall::hit>, const DeviceMeta& load, std::uint64_t left) {
    return Buffer(room_[left / 2 % 2].data(), load.bytes, MemoryKind::host);
  }
  Task<std::uint64_t> allocations() {
    co_await done_.future();
    co_return counts_.allocations;
  }

 private:
  Element<DataBall> partner_;
  std::array<std::array<std::byte, 65536>, 2> room_{};
  Promise<> done_;
  test::CallCounts counts_;
};

Task<void> count_data(Chares& chares, Placement placement, std::size_t bytes) {
  const auto balls = create_array<DataBall>(chares, 2, placement);
  balls[0].call<&DataBall::meet>(balls[1]);
  balls[1].call<&DataBall::meet>(balls[0]);
  auto first = balls[0].ask<&DataBall::allocations>();
  auto second = balls[1].ask<&DataBall::allocations>();
  const std::vector<std::byte> load(bytes);
  balls[0].call<&DataBall::hit>(device(std::span(load)), std::uint64_t{40'000});
  const std::uint64_t here = co_await first;
  EXPECT_EQ(here, 0u) << bytes << " bytes";
  const std::uint64_t there = co_await second;
  EXPECT_EQ(there, 0u) << bytes << " bytes";
}

int on_rank_0(const Index<1>&, int) { return 0; }

TEST(ChareCost, a_call_allocates_nothing_in_steady_state) {
  for (const std::size_t doubles : {std::size_t{1}, std::size_t{100}}) {
    for (const Placement& placement : {Placement::round_robin(), Placement::by<on_rank_0>()}) {
      Chares chares(test::job());
      EXPECT_EQ(chares.run(count(chares, placement, doubles)), 0) << chares.failure();
    }
  }
}

TEST(ChareCost, a_data_argument_with_a_post_entry_allocates_nothing_in_steady_state) {
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{5000}, std::size_t{60'000}}) {
    for (const Placement& placement : {Placement::round_robin(), Placement::by<on_rank_0>()}) {
      Chares chares(test::job());
      EXPECT_EQ(chares.run(count_data(chares, placement, bytes)), 0) << chares.failure();
    }
  }
}

}  // namespace
}  // namespace brant
