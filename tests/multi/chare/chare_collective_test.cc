// Runs as every rank of a job: whens, reductions, sections, callbacks, quiescence and deadlocks over the real network.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "brant/chare.h"
#include "support/job_runtime.h"

namespace brant {
namespace {

using test::job;

class Tile : public Chare<Tile, Index<2>> {
 public:
  void from_left(int, const std::vector<double>&) {}
  void from_right(int, std::span<const double>) {}

  /// A stencil whose steps are kept apart by whens, with a reduction at each end.
  Task<double> relax(int steps) {
    const Index<2> extent = this_array().extent();
    const int columns = extent[1];
    const Array<Tile> tiles = this_array();
    for (int step = 0; step < steps; ++step) {
      const std::vector<double> face(500, value_);
      tiles[{index()[0], (index()[1] + 1) % columns}].call<&Tile::from_left>(step, face);
      tiles[{index()[0], (index()[1] + columns - 1) % columns}].call<&Tile::from_right>(step, face);
      auto [left, right] = co_await when_all(when<&Tile::from_left>(step), when<&Tile::from_right>(step));
      value_ = (left.get<1>()[7] + right.get<1>()[499]) / 2;
      const double sum = co_await all_reduce<reduce::Sum>(value_);
      if (std::abs(sum - extent[0] * columns * 0.5 * (columns - 1)) > 1e-6) co_return -1;
    }
    co_return value_;
  }
  void start() { value_ = index()[1]; }
  Task<void> all(Callback<std::vector<int>> to) {
    co_await barrier();
    contribute<reduce::Gather>(index()[0] * 100 + index()[1], to);
  }
  Task<void> row(Section<Tile> section, Callback<int> to) {
    const int sum = co_await all_reduce<reduce::Sum>(section, 1);
    contribute<reduce::Max>(section, sum, to);
  }
  void flood(int depth) {
    ++hits_;
    if (depth == 0) return;
    for (int i = 1; i <= 2; ++i) {
      const Index<2> extent = this_array().extent();
      this_array()[{(index()[0] + i) % extent[0], (index()[1] + depth) % extent[1]}].call<&Tile::flood>(depth - 1);
    }
  }
  int hits() { return hits_; }
  void never(int) {}
  Task<void> wait_for_never(int step) { co_await when<&Tile::never>(step); }
  void big(Callback<std::vector<double>> to) { contribute<reduce::Sum>(std::vector<double>(200'000, index()[1]), to); }

 private:
  double value_ = 0;
  int hits_ = 0;
};

Task<void> relax(Chares& chares) {
  const auto tiles = create_array<Tile>(chares, {2, 6}, Placement::round_robin());
  tiles.call<&Tile::start>();
  co_await chares.quiescence();
  std::vector<Future<double>> done;
  for (int x = 0; x < 2; ++x) {
    for (int y = 0; y < 6; ++y) done.push_back(tiles[{x, y}].ask<&Tile::relax>(50));
  }
  for (auto& future : done) {
    const double value = co_await future;
    EXPECT_GE(value, 0);
  }
}
TEST(Collective, a_stencil_of_whens_and_reductions) {
  Chares chares(job());
  EXPECT_EQ(chares.run(relax(chares)), 0) << chares.failure();
}

Task<void> gather_and_sections(Chares& chares) {
  const auto tiles = create_array<Tile>(chares, {3, 7}, Placement::block());
  auto [to, all] = future_callback<std::vector<int>>(chares);
  tiles.call<&Tile::all>(to);
  const std::vector<int> got = co_await all;
  EXPECT_EQ(got.size(), 21u);
  EXPECT_TRUE(std::is_sorted(got.begin(), got.end()));
  for (int x = 0; x < 3; ++x) {
    const auto row = make_section(chares, tiles, Index<2>(x, 0), Index<2>(x + 1, 7), Index<2>(1, 2));
    auto result = future_callback<int>(chares);
    row.call<&Tile::row>(row, result.to);
    const int members = co_await result.future;
    EXPECT_EQ(members, 4);
  }
  auto large = future_callback<std::vector<double>>(chares);
  tiles.call<&Tile::big>(large.to);
  const std::vector<double> sums = co_await large.future;
  EXPECT_EQ(sums, std::vector<double>(200'000, 63));
}
TEST(Collective, gathers_sections_and_large_arrays) {
  Chares chares(job());
  EXPECT_EQ(chares.run(gather_and_sections(chares)), 0) << chares.failure();
}

Task<void> settle(Chares& chares) {
  const auto tiles = create_array<Tile>(chares, {3, 5}, Placement::round_robin());
  for (int round = 1; round <= 20; ++round) {
    tiles[{1, round % 5}].call<&Tile::flood>(10);
    co_await chares.quiescence();
    int hits = 0;
    for (int x = 0; x < 3; ++x) {
      for (int y = 0; y < 5; ++y) hits += co_await tiles[{x, y}].ask<&Tile::hits>();
    }
    EXPECT_EQ(hits, round * 2047);
  }
}
TEST(Collective, quiescence_comes_after_the_last_message) {
  Chares chares(job());
  EXPECT_EQ(chares.run(settle(chares)), 0) << chares.failure();
}

Task<void> hang(Chares& chares) {
  const auto tiles = create_array<Tile>(chares, {1, 4}, Placement::round_robin());
  tiles[{0, 1}].call<&Tile::never>(3);
  co_await tiles[{0, 1}].ask<&Tile::wait_for_never>(4);
}
TEST(Collective, a_deadlock_is_reported_and_ends_all_ranks) {
  Chares chares(job(), {.deadlock_after = std::chrono::milliseconds(100)});
  EXPECT_EQ(chares.run(hang(chares)), 1);
  if (job().rank().value != 0) return;
  const std::string& text = chares.failure();
  for (const char* part :
       {"deadlock: nothing can run any more", "the main task on rank 0",
        "Tile[0,1]::wait_for_never on rank 1 waits for when never(4)", "1 calls of never that do not match"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in\n" << text;
  }
}

/// Busy for longer than the patience: nobody is stuck.
class Slow : public Chare<Slow> {
 public:
  int compute() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    while (std::chrono::steady_clock::now() < end) {
    }
    return 7;
  }
};
Task<void> busy(Chares& chares) {
  const auto workers = create_group<Slow>(chares);
  const int result = co_await workers[chares.size() - 1].ask<&Slow::compute>();
  EXPECT_EQ(result, 7);
}
TEST(Collective, a_rank_that_computes_is_no_deadlock) {
  Chares chares(job(), {.deadlock_after = std::chrono::milliseconds(20)});
  EXPECT_EQ(chares.run(busy(chares)), 0) << chares.failure();
}

}  // namespace
}  // namespace brant
