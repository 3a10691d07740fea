// Runs as every rank of a job (`brant run -n N`): chares in real processes over the real network.
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "brant/chare.h"
#include "support/effort.h"
#include "support/job_runtime.h"

namespace brant {
namespace {

using test::job;

class Block : public Chare<Block, Index<3>> {
 public:
  explicit Block(double start) : sum_(start) {}

  void halo(int step, std::span<const double> face) {
    steps_.push_back(step);
    sum_ += std::accumulate(face.begin(), face.end(), 0.0);
  }
  double sum() { return sum_; }
  std::vector<int> steps() { return steps_; }
  int where() { return chares().rank().value; }
  std::vector<double> echo(std::vector<double> values) { return values; }
  /// To its right neighbour and on, until the number has come to 0.
  Task<int> around(int left) {
    if (left == 0) co_return 0;
    const Index<3> next(index()[0], index()[1], (index()[2] + 1) % this_array().extent()[2]);
    co_return 1 + co_await this_array()[next].ask<&Block::around>(left - 1);
  }
  void fail() { throw Error(Status::device_failed, "on purpose"); }

 private:
  double sum_;
  std::vector<int> steps_;
};

std::vector<double> ramp(std::size_t count) {
  std::vector<double> values(count);
  std::iota(values.begin(), values.end(), 0.0);
  return values;
}

Task<void> exchange(Chares& chares) {
  const auto blocks = create_array<Block>(chares, {2, 2, 6}, Placement::round_robin(), 1.0);
  const auto face = ramp(100);
  for (int step = 0; step < 20; ++step) {
    for (int z = 0; z < 6; ++z) blocks[{1, 1, z}].call<&Block::halo>(step, face);
    blocks.call<&Block::halo>(100 + step, face);
  }
  for (int x = 0; x < 2; ++x) {
    for (int z = 0; z < 6; ++z) {
      const auto steps = co_await blocks[{x, 1, z}].ask<&Block::steps>();
      std::vector<int> single;
      for (const int step : steps) {
        if (step < 100) single.push_back(step);
      }
      EXPECT_EQ(single.size(), x == 1 ? 20u : 0u);
      EXPECT_TRUE(std::is_sorted(single.begin(), single.end()));
      EXPECT_EQ(steps.size() - single.size(), 20u);
      const double sum = co_await blocks[{x, 1, z}].ask<&Block::sum>();
      EXPECT_EQ(sum, 1.0 + 4950.0 * (x == 1 ? 40 : 20));
      const int rank = co_await blocks[{x, 1, z}].ask<&Block::where>();
      EXPECT_EQ(rank, (x * 12 + 6 + z) % chares.size());
    }
  }
  const int hops = co_await blocks[{0, 0, 0}].ask<&Block::around>(50);
  EXPECT_EQ(hops, 50);
}
TEST(ChareRanks, calls_and_broadcasts_arrive_in_order) {
  Chares chares(job());
  EXPECT_EQ(chares.run(exchange(chares)), 0) << chares.failure();
}

Task<void> sizes(Chares& chares) {
  const auto blocks = create_array<Block>(chares, {1, 1, chares.size()}, Placement::block(), 0.0);
  for (std::size_t count = 0; count <= 2'000'000; count = count * 5 + 1) {
    const auto sent = ramp(count);
    for (int rank = 0; rank < chares.size(); ++rank) {
      const auto back = co_await blocks[{0, 0, rank}].ask<&Block::echo>(sent);
      EXPECT_EQ(back == sent, true) << count << " doubles, rank " << rank;
    }
  }
}
TEST(ChareRanks, arguments_and_results_of_all_sizes_come_back) {
  Chares chares(job());
  EXPECT_EQ(chares.run(sizes(chares)), 0) << chares.failure();
}

class Flooder : public Chare<Flooder> {
 public:
  void flood(Element<Flooder> target, int calls) {
    for (int i = 0; i < calls; ++i) target.call<&Flooder::take>(i, std::int64_t{1});
  }
  void take(int number, std::int64_t) {
    in_order_ = in_order_ && number == count_;
    ++count_;
  }
  int count() { return in_order_ ? count_ : -1; }

 private:
  int count_ = 0;
  bool in_order_ = true;
};

/// Everybody floods his neighbour at once, with more than may be under way.
Task<void> flood(Chares& chares) {
  constexpr int kCalls = 400'000;
  const Group<Flooder> group = create_group<Flooder>(chares);
  const Group<Flooder> sources = create_group<Flooder>(chares);
  std::vector<Future<void>> floods;
  for (int rank = 0; rank < chares.size(); ++rank) {
    floods.push_back(sources[rank].ask<&Flooder::flood>(group[(rank + 1) % chares.size()], kCalls));
  }
  for (Future<void>& done : floods) co_await done;
  for (int rank = 0; rank < chares.size(); ++rank) {
    int count = 0;
    while (count >= 0 && count < kCalls) count = co_await group[rank].ask<&Flooder::count>();
    EXPECT_EQ(count, kCalls) << "rank " << rank << " (-1: out of order)";
  }
}
TEST(ChareRanks, a_flood_in_a_circle_is_held_back_and_loses_nothing) {
  Chares chares(job());
  EXPECT_EQ(chares.run(flood(chares)), 0) << chares.failure();
}

/// Two methods that flood each other's chare: neither returns, so neither takes anything.
Task<void> flood_in_embrace(Chares& chares) {
  constexpr int kCalls = test::effort(1'000'000, 100'000);
  const Group<Flooder> group = create_group<Flooder>(chares);
  auto first = group[0].ask<&Flooder::flood>(group[1], kCalls);
  auto second = group[1].ask<&Flooder::flood>(group[0], kCalls);
  int refused = 0;
  for (Future<void>* done : {&first, &second}) {
    try {
      co_await *done;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::limit_reached) << error.what();
      EXPECT_NE(std::string(error.what()).find("Flooder["), std::string::npos) << error.what();
      ++refused;
    }
  }
  EXPECT_GE(refused, 1);
  chares.exit(7);  // what was taken is still under way
}
TEST(ChareRanks, a_flood_in_embrace_ends_with_an_error_and_not_in_a_hang) {
  Chares chares(job(), {.undelivered_max = 1000, .held_back_max = std::chrono::milliseconds(300)});
  EXPECT_EQ(chares.run(flood_in_embrace(chares)), 7) << chares.failure();
}

Task<void> fails(Chares& chares) {
  create_array<Block>(chares, {1, 1, 4}, Placement::round_robin(), 0.0)[{0, 0, 1}].call<&Block::fail>();
  co_await chares.until_exit();
}
TEST(ChareRanks, an_error_ends_all_ranks_and_is_told_by_one) {
  Chares chares(job());
  EXPECT_EQ(chares.run(fails(chares)), 1);
  EXPECT_EQ(chares.failure().empty(), job().rank().value != 1) << chares.failure();
  if (job().rank().value == 1) {
    EXPECT_NE(chares.failure().find("Block[0,0,1]::fail on rank 1 threw: on purpose"), std::string::npos)
        << chares.failure();
  }
}

/// Every round asks more than it awaits before the array goes: the rest is answered or refused.
Task<void> make_and_destroy(Chares& chares) {
  int answered = 0, refused = 0;
  for (int round = 0; round < 500; ++round) {
    const auto blocks = create_array<Block>(chares, {1, 1, 5}, Placement::round_robin(), round);
    std::vector<Future<double>> sums;
    for (int i = 0; i < 10; ++i) sums.push_back(blocks[{0, 0, i % 5}].ask<&Block::sum>());
    const double first = co_await sums[0];
    EXPECT_EQ(first, round);
    blocks.destroy();
    for (std::size_t i = 1; i < sums.size(); ++i) {
      try {
        const double sum = co_await sums[i];
        EXPECT_EQ(sum, round);
        ++answered;
      } catch (const Error& error) {
        EXPECT_EQ(error.status(), Status::not_found) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_EQ(answered + refused, 500 * 9);
}
TEST(ChareRanks, arrays_are_destroyed_with_questions_under_way) {
  Chares chares(job());
  EXPECT_EQ(chares.run(make_and_destroy(chares)), 0) << chares.failure();
  EXPECT_EQ(chares.counts().elements, 0u);
}

Task<void> nothing(Chares&) { co_return; }
TEST(ChareRanks, the_next_program_starts_clean) {
  for (int i = 0; i < 20; ++i) {
    Chares chares(job());
    ASSERT_EQ(chares.run(nothing(chares)), 0) << chares.failure();
  }
}

}  // namespace
}  // namespace brant
