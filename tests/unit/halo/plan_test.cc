#include "models/halo/plan.h"

#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "brant/base/status.h"

namespace {

using namespace brant::halo;

Decomposition cube(std::int64_t cells, int parts) {
  return {.grid = {cells, cells, cells},
          .divide = {parts, parts, parts},
          .periodic = {true, true, true},
          .ghost = {1, 1, 1}};
}

/// How many messages have how many bytes, with three variables of doubles.
std::map<std::int64_t, int> sizes(const std::vector<Message>& messages) {
  std::map<std::int64_t, int> count;
  for (const Message& message : messages) ++count[message.cells() * 3 * 8];
  return count;
}

/// The cell of the grid that stands at a place of a block's array; ghosts beyond a periodic edge are those of the other
/// side.
Cells cell_at(const Decomposition& cut, int block, const Cells& place) {
  const Box cells = cut.cells_of(block);
  Cells cell;
  for (std::size_t d = 0; d < kDims; ++d) {
    cell[d] = cells.low[d] + place[d] - cut.ghost[d];
    if (cut.periodic[d]) cell[d] = (cell[d] + cut.grid[d]) % cut.grid[d];
  }
  return cell;
}

template <typename Visit>
void for_each_cell(const Box& box, Visit visit) {
  for (std::int64_t z = box.low[2]; z < box.high[2]; ++z) {
    for (std::int64_t y = box.low[1]; y < box.high[1]; ++y) {
      for (std::int64_t x = box.low[0]; x < box.high[0]; ++x) visit(Cells{x, y, z});
    }
  }
}

bool inside(const Box& box, const Cells& cell) {
  for (std::size_t d = 0; d < kDims; ++d) {
    if (cell[d] < box.low[d] || cell[d] >= box.high[d]) return false;
  }
  return true;
}

Cells moved(const Cells& cell, const Box& from, const Box& to) {
  return {cell[0] - from.low[0] + to.low[0], cell[1] - from.low[1] + to.low[1], cell[2] - from.low[2] + to.low[2]};
}

/// Where a block's ghosts come from: every one that has an owner once, and each from the cell that it stands for.
void expect_each_ghost_once(const Decomposition& cut, int block) {
  std::map<Cells, int> received;
  for (const Message& message : plan_block(cut, block).receives) {
    EXPECT_EQ(message.to, block);
    for (const Region& region : message.regions) {
      ASSERT_EQ(region.from.cells(), region.to.cells());
      for_each_cell(region.to, [&](const Cells& place) {
        ++received[place];
        const Cells source = moved(place, region.to, region.from);
        EXPECT_TRUE(inside(cut.owned_by(message.from), source));
        EXPECT_EQ(cell_at(cut, message.from, source), cell_at(cut, block, place));
      });
    }
  }
  for_each_cell(Box{{}, cut.array_of(block)}, [&](const Cells& place) {
    const bool own = inside(cut.owned_by(block), place);
    EXPECT_EQ(received[place], own ? 0 : 1)
        << "block " << block << " at " << place[0] << ' ' << place[1] << ' ' << place[2];
  });
}

/// What one block sends is what the other one receives, region by region.
void expect_ends_agree(const Decomposition& cut, int block) {
  for (const Message& sent : plan_block(cut, block).sends) {
    const auto there = plan_block(cut, sent.to).receives;
    const auto same = std::find_if(there.begin(), there.end(), [&](const Message& m) { return m.from == block; });
    ASSERT_NE(same, there.end());
    ASSERT_EQ(sent.regions.size(), same->regions.size());
    for (std::size_t i = 0; i < sent.regions.size(); ++i) {
      EXPECT_EQ(sent.regions[i].from, same->regions[i].from);
      EXPECT_EQ(sent.regions[i].to, same->regions[i].to);
    }
  }
}

TEST(HaloPlan, has_the_message_sizes_of_the_paper) {
  const std::map<std::int64_t, std::map<std::int64_t, int>> expected = {
      {200, {{60'000, 6}, {1'200, 12}, {24, 8}}},
      {400, {{240'000, 6}, {2'400, 12}, {24, 8}}},
      {800, {{960'000, 6}, {4'800, 12}, {24, 8}}},
  };
  for (const auto& [cells, messages] : expected) {
    const Decomposition cut = cube(cells, 4);
    ASSERT_EQ(cut.blocks(), 64);
    for (int block = 0; block < cut.blocks(); ++block) {
      EXPECT_EQ(sizes(plan_block(cut, block).sends), messages);
      EXPECT_EQ(sizes(plan_block(cut, block).receives), messages);
    }
  }
}

TEST(HaloPlan, merges_what_goes_to_one_partner) {
  EXPECT_EQ(sizes(plan_block(cube(100, 2), 0).sends),
            (std::map<std::int64_t, int>{{120'000, 3}, {4'800, 3}, {192, 1}}));
  const BlockPlan alone = plan_block(cube(10, 1), 0);
  ASSERT_EQ(alone.sends.size(), 1u);
  EXPECT_EQ(alone.sends[0].regions.size(), 26u);
}

TEST(HaloPlan, begins_with_the_partners_above_and_wraps) {
  const BlockPlan plan = plan_block(cube(100, 2), 5);
  std::vector<int> partners;
  for (const Message& message : plan.sends) partners.push_back(message.to);
  EXPECT_EQ(partners, (std::vector<int>{6, 7, 0, 1, 2, 3, 4}));
}

TEST(HaloPlan, fills_each_ghost_that_has_an_owner_once_from_the_right_cell) {
  const std::vector<Decomposition> cuts = {
      {{7, 8, 9}, {2, 3, 1}, {true, false, true}, {1, 2, 3}},
      {{7, 8, 9}, {3, 2, 2}, {false, false, false}, {2, 1, 1}},
      {{5, 5, 5}, {1, 2, 2}, {true, true, true}, {2, 2, 2}},
      {{9, 7, 1}, {3, 2, 1}, {true, true, false}, {2, 1, 0}},  // two dimensions
      {{6, 6, 6}, {1, 1, 1}, {true, false, true}, {6, 1, 2}},
  };
  for (const Decomposition& cut : cuts) {
    cut.require_sense();
    for (int block = 0; block < cut.blocks(); ++block) {
      expect_each_ghost_once(cut, block);
      expect_ends_agree(cut, block);
    }
  }
}

TEST(HaloDecomposition, gives_the_first_blocks_the_cells_that_are_left_over) {
  const Decomposition cut = {{10, 3, 4}, {4, 1, 2}, {}, {}};
  std::vector<std::int64_t> widths;
  for (int x = 0; x < 4; ++x) {
    const Box cells = cut.cells_of(cut.block_at({x, 0, 1}));
    widths.push_back(cells.high[0] - cells.low[0]);
    EXPECT_EQ(cells.low[2], 2);
  }
  EXPECT_EQ(widths, (std::vector<std::int64_t>{3, 3, 2, 2}));
  EXPECT_EQ(cut.block_at({0, 0, 1}), 1);
}

TEST(HaloDecomposition, refuses_grids_whose_cells_cannot_be_counted) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 40;
  for (const Decomposition& cut : {Decomposition{{kLarge, kLarge, 1}, {1, 1, 1}, {}, {}},
                                   Decomposition{{8, 8, 8}, {1, 1, 1}, {}, {0, INT64_MAX, 0}}}) {
    try {
      cut.require_sense();
      ADD_FAILURE() << "2^48 cells are the most";
    } catch (const brant::Error& error) {
      EXPECT_EQ(error.status(), brant::Status::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("use at most 281474976710656 in all"), std::string::npos)
          << error.what();
    }
  }
}

TEST(HaloDecomposition, refuses_ghosts_that_are_wider_than_a_block) {
  const Decomposition cut = {{10, 10, 10}, {4, 1, 1}, {}, {3, 3, 3}};
  try {
    cut.require_sense();
    FAIL() << "the narrowest block has 2 cells along x";
  } catch (const brant::Error& error) {
    EXPECT_EQ(error.status(), brant::Status::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("along x 10 cells in 4 parts leave 2"), std::string::npos) << error.what();
  }
}

}  // namespace
