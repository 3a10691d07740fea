// A call in steady state allocates nothing: neither between processes nor within one. Counted in this process as a
// whole, the network library included.
#include <atomic>
#include <cstdint>
#include <cstdlib>

#include <gtest/gtest.h>

#include "brant/chare.h"

namespace {

std::atomic<std::uint64_t> g_allocations{0};
thread_local bool t_counting = false;  // the network library's own threads do not count

}  // namespace

extern "C" {

void* __libc_malloc(std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

__attribute__((visibility("default"))) void* malloc(std::size_t bytes) {
  if (t_counting) g_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
__attribute__((visibility("default"))) void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (t_counting) g_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}

}  // extern "C"

namespace brant {
namespace {

class Ball : public Chare<Ball> {
 public:
  void meet(Element<Ball> partner) { partner_ = partner; }
  void hit(std::uint64_t left, std::span<const double> load) {
    if (left == 20'000) {
      g_allocations = 0;
      t_counting = true;  // both ends are warm
    }
    if (left <= 1) t_counting = false;
    if (left != 0) partner_.call<&Ball::hit>(left - 1, load);
    if (left <= 1) done_.deliver();
  }
  Task<std::uint64_t> allocations() {
    co_await done_.future();
    co_return g_allocations.load();
  }

 private:
  Element<Ball> partner_;
  Promise<> done_;
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
int on_rank_0(const Index<1>&, int) { return 0; }

TEST(ChareCost, a_call_allocates_nothing_in_steady_state) {
  Runtime runtime;
  for (const std::size_t doubles : {std::size_t{1}, std::size_t{100}}) {
    for (const Placement& placement : {Placement::round_robin(), Placement::by<on_rank_0>()}) {
      Chares chares(runtime);
      EXPECT_EQ(chares.run(count(chares, placement, doubles)), 0) << chares.failure();
    }
  }
}

}  // namespace
}  // namespace brant
