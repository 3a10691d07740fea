#include "decomposition.h"

#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "brant/base/status.h"

namespace apps {
namespace {

Extent blocks_of(const Extent& global, int processes) { return decompose(global, processes).blocks; }

/// The least surface found by trying everything.
double least_surface(const Extent& global, int processes) {
  double least = std::numeric_limits<double>::max();
  for (std::int64_t x = 1; x <= processes; ++x) {
    for (std::int64_t y = 1; y <= processes; ++y) {
      for (std::int64_t z = 1; z <= processes; ++z) {
        if (x * y * z != processes || x > global.x || y > global.y || z > global.z) continue;
        const auto surface = static_cast<double>((x - 1) * global.y * global.z + (y - 1) * global.x * global.z +
                                                 (z - 1) * global.x * global.y);
        least = std::min(least, surface);
      }
    }
  }
  return least;
}

TEST(Decomposition, cubes_are_cut_along_z_first) {
  EXPECT_EQ(blocks_of({64, 64, 64}, 1), (Extent{1, 1, 1}));
  EXPECT_EQ(blocks_of({64, 64, 64}, 2), (Extent{1, 1, 2}));
  EXPECT_EQ(blocks_of({64, 64, 64}, 4), (Extent{1, 2, 2}));
  EXPECT_EQ(blocks_of({64, 64, 64}, 8), (Extent{2, 2, 2}));
}

TEST(Decomposition, long_axes_are_cut) {
  EXPECT_EQ(blocks_of({1000, 10, 10}, 4), (Extent{4, 1, 1}));
  EXPECT_EQ(blocks_of({10, 1000, 10}, 4), (Extent{1, 4, 1}));
}

TEST(Decomposition, primes_make_slabs_of_a_cube) { EXPECT_EQ(blocks_of({64, 64, 64}, 7), (Extent{1, 1, 7})); }

TEST(Decomposition, surface_is_the_least_of_all_cuts) {
  for (const Extent& global : {Extent{64, 64, 64}, Extent{100, 7, 31}, Extent{5, 300, 20}, Extent{12, 12, 1}}) {
    for (int processes = 1; processes <= 30; ++processes) {
      if (least_surface(global, processes) == std::numeric_limits<double>::max()) continue;
      const Extent blocks = blocks_of(global, processes);
      const auto surface =
          static_cast<double>((blocks.x - 1) * global.y * global.z + (blocks.y - 1) * global.x * global.z +
                              (blocks.z - 1) * global.x * global.y);
      EXPECT_EQ(surface, least_surface(global, processes)) << to_text(global) << " on " << processes;
    }
  }
}

TEST(Decomposition, blocks_tile_the_grid_and_differ_by_one_cell_at_most) {
  for (const int processes : {1, 2, 3, 5, 6, 7, 12, 16}) {
    const Decomposition cut = decompose({23, 17, 19}, processes);
    std::int64_t cells = 0;
    for (int rank = 0; rank < processes; ++rank) {
      const Box box = cut.block(rank);
      const Extent extent = extent_of(box);
      cells += volume(extent);
      for (const auto [size, whole, parts] :
           {std::array{extent.x, cut.global.x, cut.blocks.x}, std::array{extent.y, cut.global.y, cut.blocks.y},
            std::array{extent.z, cut.global.z, cut.blocks.z}}) {
        EXPECT_GE(size, whole / parts);
        EXPECT_LE(size, (whole + parts - 1) / parts);
      }
    }
    EXPECT_EQ(cells, volume(cut.global));
  }
}

TEST(Decomposition, neighbours_know_each_other_and_touch) {
  const Decomposition cut = decompose({20, 20, 20}, 12);
  for (int rank = 0; rank < 12; ++rank) {
    for (int side = 0; side < kSides; ++side) {
      const std::optional<int> other = cut.neighbour(rank, side);
      if (!other) continue;
      EXPECT_EQ(cut.neighbour(*other, side ^ 1), rank);
      const Box mine = cut.block(rank);
      const Box theirs = cut.block(*other);
      if (side == x_high) {
        EXPECT_EQ(mine.high.x, theirs.low.x);
      }
      if (side == y_high) {
        EXPECT_EQ(mine.high.y, theirs.low.y);
      }
      if (side == z_high) {
        EXPECT_EQ(mine.high.z, theirs.low.z);
      }
    }
  }
}

TEST(Decomposition, neighbours_of_a_single_process_are_none) {
  const Decomposition cut = decompose({4, 4, 4}, 1);
  for (int side = 0; side < kSides; ++side) EXPECT_FALSE(cut.neighbour(0, side));
}

TEST(Decomposition, more_processes_than_cells_are_refused_by_name) {
  try {
    static_cast<void>(decompose({2, 2, 2}, 16));
    FAIL() << "16 blocks of 8 cells";
  } catch (const brant::Error& error) {
    EXPECT_EQ(error.status(), brant::Status::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("2 x 2 x 2"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("16"), std::string::npos);
  }
}

TEST(Decomposition, a_prime_that_fits_no_axis_is_refused) {
  EXPECT_THROW(static_cast<void>(decompose({4, 4, 4}, 7)), brant::Error);
}

/// Every cell of a block must be in exactly one part.
void expect_partition(const Extent& cells, const Split& split) {
  std::int64_t total = is_empty(split.interior) ? 0 : volume(extent_of(split.interior));
  std::set<std::array<std::int64_t, 3>> seen;
  for (int index = 0; index < split.shell.count; ++index) {
    const Box& box = split.shell.box[index];
    total += volume(extent_of(box));
    for (std::int64_t z = box.low.z; z < box.high.z; ++z) {
      for (std::int64_t y = box.low.y; y < box.high.y; ++y) {
        for (std::int64_t x = box.low.x; x < box.high.x; ++x) EXPECT_TRUE(seen.insert({x, y, z}).second);
      }
    }
  }
  EXPECT_EQ(total, volume(cells));
}

TEST(Split, every_cell_is_in_exactly_one_part) {
  for (const Extent& cells : {Extent{5, 4, 3}, Extent{1, 1, 1}, Extent{2, 2, 2}, Extent{1, 5, 2}, Extent{6, 1, 4}}) {
    for (unsigned mask = 0; mask < 64; ++mask) {
      std::array<bool, kSides> has{};
      for (unsigned side = 0; side < kSides; ++side) has[side] = (mask >> side & 1u) != 0;
      expect_partition(cells, split_block(cells, has));
    }
  }
}

TEST(Split, interior_touches_no_ghost_cell_of_a_neighbour) {
  const Split split = split_block({8, 8, 8}, {true, false, true, true, false, true});
  EXPECT_EQ(split.interior, (Box{{1, 1, 0}, {8, 7, 7}}));
  EXPECT_EQ(split.shell.count, 4);
}

}  // namespace
}  // namespace apps
