// k-means driven by reductions: every block of points assigns its points to the nearest centre, the sums of all blocks
// are reduced to everyone, and all compute the same new centres. Where there is a device, the sums lie in its memory.
//   brant run -n 4 -- kmeans [BLOCKS] [POINTS_PER_BLOCK]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "brant/chare.h"
using namespace brant;

constexpr int kClusters = 4;

struct Point {
  double x = 0, y = 0;
};
/// Per cluster: the sum of its points, and how many they are.
using Sums = std::vector<double>;

Point true_centre(int cluster) { return {cluster % 2 == 0 ? -3.0 : 3.0, cluster < 2 ? -3.0 : 3.0}; }

class Block : public Chare<Block> {
 public:
  explicit Block(int points) {
    std::mt19937 random(static_cast<unsigned>(index()[0]));
    std::normal_distribution<double> noise(0, 0.5);
    for (int i = 0; i < points; ++i) {
      const Point centre = true_centre(i % kClusters);
      points_.push_back({centre.x + noise(random), centre.y + noise(random)});
    }
    for (int c = 0; c < kClusters; ++c) centres_.push_back({0.4 * true_centre(c).x + 0.1, 0.3 * true_centre(c).y});
  }

  /// Iterates until no centre moves; then every block contributes to `spread` (the sum of squared distances).
  Task<void> fit(int rounds_max, Callback<double> spread, Callback<int> rounds) {
    int round = 0;
    for (double moved = 1; moved > 1e-9 && round < rounds_max; ++round) {
      Sums sums = assign();
      co_await reduce_sums(sums);
      moved = move_centres(sums);
    }
    contribute<reduce::Max>(round, rounds);
    contribute<reduce::Sum>(spread_, spread);
  }
  std::vector<double> centres() {
    std::vector<double> flat;
    for (const Point& centre : centres_) flat.insert(flat.end(), {centre.x, centre.y});
    return flat;
  }

 private:
  Task<void> reduce_sums(Sums& sums) {
    Runtime& runtime = chares().runtime();
    if (runtime.device_kind() == MemoryKind::host) {
      sums = co_await all_reduce<reduce::Sum>(sums);
      co_return;
    }
    if (device_sums_.bytes() == 0) device_sums_ = runtime.allocate(runtime.device_kind(), sums.size() * sizeof(double));
    co_await copy_done(runtime, device_sums_, std::span<double>(sums));
    co_await all_reduce_device<reduce::Sum, double>(device_sums_);
    co_await copy_done(runtime, std::span<double>(sums), device_sums_);
  }

  Sums assign() {
    Sums sums(3 * kClusters);
    spread_ = 0;
    for (const Point& point : points_) {
      std::size_t nearest = 0;
      double least = INFINITY;
      for (std::size_t c = 0; c < centres_.size(); ++c) {
        const double dx = point.x - centres_[c].x, dy = point.y - centres_[c].y;
        if (dx * dx + dy * dy < least) {
          least = dx * dx + dy * dy;
          nearest = c;
        }
      }
      sums[3 * nearest] += point.x;
      sums[3 * nearest + 1] += point.y;
      sums[3 * nearest + 2] += 1;
      spread_ += least;
    }
    return sums;
  }
  /// How far the centre that moved most did.
  double move_centres(const Sums& sums) {
    double most = 0;
    for (std::size_t c = 0; c < centres_.size(); ++c) {
      if (sums[3 * c + 2] == 0) continue;
      const Point moved{sums[3 * c] / sums[3 * c + 2], sums[3 * c + 1] / sums[3 * c + 2]};
      most = std::max(most, std::hypot(moved.x - centres_[c].x, moved.y - centres_[c].y));
      centres_[c] = moved;
    }
    return most;
  }

  std::vector<Point> points_;
  std::vector<Point> centres_;
  double spread_ = 0;
  Memory device_sums_;
};

Task<int> kmeans(Chares& chares, int count, int points) {
  const Array<Block> blocks = create_array<Block>(chares, count, Placement::block(), points);
  auto [to_spread, spread] = future_callback<double>(chares);
  auto [to_rounds, rounds] = future_callback<int>(chares);
  blocks.call<&Block::fit>(100, to_spread, to_rounds);
  const int took = co_await rounds;
  const double total = co_await spread;
  const std::vector<double> centres = co_await blocks[0].ask<&Block::centres>();
  std::printf("%d blocks of %d points on %d ranks (sums in %s memory): %d rounds, mean squared distance %.3f\n", count,
              points, chares.size(), std::string(memory_kind_name(chares.runtime().device_kind())).c_str(), took,
              total / count / points);
  bool right = true;
  for (int c = 0; c < kClusters; ++c) {
    const double x = centres[static_cast<std::size_t>(2 * c)], y = centres[static_cast<std::size_t>(2 * c + 1)];
    std::printf("  centre %d: (%6.3f, %6.3f)\n", c, x, y);
    right = right && std::hypot(x - true_centre(c).x, y - true_centre(c).y) < 0.2;
  }
  if (!right) std::fprintf(stderr, "the centres are not where the points were made\n");
  co_return right ? 0 : 1;
}

int main(int argc, char** argv) {
  const int blocks = argc > 1 ? std::atoi(argv[1]) : 8;
  const int points = argc > 2 ? std::atoi(argv[2]) : 10'000;
  Runtime runtime;
  Chares chares(runtime);
  return chares.run(kmeans(chares, blocks, points));
}
