// The kernel that stays, on the emulated device: its blocks are threads of this process, and so are those of the
// neighbours' kernels.
#include "resident.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "models.h"
#include "support/in_process_job.h"

namespace jacobi {
namespace {

using brant::test::InProcessJob;

constexpr auto kDirect = brant::HaloMode::direct;
constexpr auto kStream = brant::HaloMode::stream;
constexpr auto kStacked = brant::HaloMode::stacked;

struct Case {
  const char* name;
  Decomposition cut;
  bool overlaps = false;
  brant::HaloMode mode = brant::HaloMode::direct;
  bool in_lines = false;
};

brant::HaloOptions options_of(const Case& one, int field) {
  brant::HaloOptions options = exchange_of_field(one.cut, one.mode, {}, field);
  options.own_kernels = one.in_lines;
  return options;
}

/// The cells of a block, whose field holds them.
std::vector<double> cells_of(const Block& block) {
  const Layout& layout = block.layout();
  std::vector<double> field(static_cast<std::size_t>(layout.doubles));
  block.read(field);
  std::vector<double> cells;
  for (std::int64_t z = 0; z < layout.cells.z; ++z) {
    for (std::int64_t y = 0; y < layout.cells.y; ++y) {
      for (std::int64_t x = 0; x < layout.cells.x; ++x) {
        cells.push_back(field[static_cast<std::size_t>(layout.at(x, y, z))]);
      }
    }
  }
  return cells;
}

/// The same grid on one process without an exchange, as it is after so many iterations: the cells of a box.
std::vector<double> expected(const Decomposition& cut, int number, int iterations) {
  InProcessJob job(brant::test::ranks(1));
  Block whole(job.rank(0), {cut.global, {1, 1, 1}}, 0, brant::MemoryKind::host);
  const auto stencil = make_stencil(job.rank(0), whole);
  stencil->fill();
  for (int i = 0; i < iterations; ++i) {
    stencil->start(Step::whole);
    job.rank(0).run(stencil->finish(Step::whole));
    whole.swap();
  }
  const Box box = cut.block(number);
  const Layout& layout = whole.layout();
  std::vector<double> cells;
  for (std::int64_t z = box.low.z; z < box.high.z; ++z) {
    for (std::int64_t y = box.low.y; y < box.high.y; ++y) {
      for (std::int64_t x = box.low.x; x < box.high.x; ++x) cells.push_back(whole.current()[layout.at(x, y, z)]);
    }
  }
  return cells;
}

/// What one rank has.
struct Side {
  Side(brant::Runtime& runtime, const Case& one, int rank)
      : block(runtime, one.cut, rank, brant::MemoryKind::emulated, Faces::in_place),
        stencil(make_stencil(runtime, block)),
        exchanges{brant::HaloExchange(runtime, options_of(one, 0)), brant::HaloExchange(runtime, options_of(one, 1))} {
    stencil->fill();
  }
  brant::Task<void> bind() {
    const std::array fields = {block.current_field(), block.next_field()};
    for (std::size_t i = 0; i < 2; ++i) co_await exchanges[i].bind(std::span(&fields[i], 1));
  }

  Block block;
  std::unique_ptr<Stencil> stencil;
  std::array<brant::HaloExchange, 2> exchanges;
  std::unique_ptr<ResidentSolver> solver;
};

void together(InProcessJob& job, std::vector<brant::Task<void>> tasks) {
  for (auto& task : tasks) task.start();
  ASSERT_TRUE(
      job.run_until([&] { return std::ranges::all_of(tasks, [](const auto& task) { return task.finished(); }); }));
  for (auto& task : tasks) task.take();
}

class ResidentIterations : public testing::TestWithParam<Case> {};

TEST_P(ResidentIterations, agree_with_one_process_to_the_last_bit) {
  const Decomposition& cut = GetParam().cut;
  const int ranks = cut.processes();
  InProcessJob job(brant::test::ranks(ranks, brant::GpuChoice::emulated));
  std::vector<std::unique_ptr<Side>> sides;
  sides.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) sides.push_back(std::make_unique<Side>(job.rank(rank), GetParam(), rank));
  const auto all = [&](auto&& step) {
    std::vector<brant::Task<void>> tasks;
    for (auto& side : sides) tasks.push_back(step(*side));
    together(job, std::move(tasks));
  };
  all([](Side& side) { return side.bind(); });
  for (int rank = 0; rank < ranks; ++rank) {
    Side& side = *sides[static_cast<std::size_t>(rank)];
    side.solver = std::make_unique<ResidentSolver>(job.rank(rank), side.block, side.exchanges, GetParam().mode,
                                                   GetParam().overlaps, true);
  }
  int done = 0;
  for (const int times : {1, 4, 3}) {  // each time another field is the first
    all([&](Side& side) { return side.solver->run(static_cast<std::uint64_t>(times)); });
    if (HasFatalFailure()) return;
    done += times;
    for (int rank = 0; rank < ranks; ++rank) {
      const Side& side = *sides[static_cast<std::size_t>(rank)];
      EXPECT_EQ(cells_of(side.block), expected(cut, rank, done)) << "rank " << rank << " after " << done;
      EXPECT_EQ(side.solver->laps().size(), static_cast<std::size_t>(times));
      for (const Lap& lap : side.solver->laps()) EXPECT_LE(lap.exchange, lap.all);
    }
  }
}

// Rows of one cell along x go packed, and are taken by all blocks of the kernel before any of them sweeps.
INSTANTIATE_TEST_SUITE_P(Cuts, ResidentIterations,
                         testing::Values(Case{"alone", {{9, 20, 20}, {1, 1, 1}}},
                                         Case{"along_z_in_lines", {{33, 18, 40}, {1, 1, 2}}, false, kDirect, true},
                                         Case{"along_x_in_lines", {{40, 18, 33}, {2, 1, 1}}, true, kDirect, true},
                                         Case{
                                             "along_x_and_y_in_lines", {{21, 18, 33}, {2, 2, 1}}, false, kDirect, true},
                                         Case{"along_z", {{33, 18, 40}, {1, 1, 2}}},
                                         Case{"along_z_overlapped", {{33, 18, 40}, {1, 1, 2}}, true},
                                         Case{"along_x", {{40, 18, 33}, {2, 1, 1}}},
                                         Case{"along_x_and_y_overlapped", {{21, 18, 33}, {2, 2, 1}}, true},
                                         Case{"single_layers", {{5, 4, 3}, {1, 1, 3}}, true},
                                         Case{"alone_streamed", {{9, 20, 20}, {1, 1, 1}}, false, kStream},
                                         Case{"along_z_streamed", {{33, 18, 40}, {1, 1, 2}}, false, kStream},
                                         Case{"along_x_streamed_overlapped", {{40, 18, 33}, {2, 1, 1}}, true, kStream},
                                         Case{"along_x_and_y_streamed", {{21, 18, 33}, {2, 2, 1}}, false, kStream},
                                         Case{"single_layers_streamed", {{5, 4, 3}, {1, 1, 3}}, true, kStream},
                                         Case{"along_z_stacked_overlapped", {{33, 18, 40}, {1, 1, 2}}, true, kStacked},
                                         Case{"along_x_and_y_stacked", {{21, 18, 33}, {2, 2, 1}}, false, kStacked}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace jacobi
