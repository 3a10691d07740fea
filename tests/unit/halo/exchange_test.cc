// Exchanges between the ranks of a job in this process: every cell of every field, before and after.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "brant/halo.h"
#include "core/engine.h"
#include "models/halo/decomposition.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using test::InProcessJob;

struct Case {
  const char* name;
  int ranks;
  MemoryKind kind;
  HaloOptions options;
};

/// How it is exchanged.
struct Way {
  const char* name;
  HaloMode mode;
  HaloMessages messages = HaloMessages::per_process;
};
constexpr Way kShapes{"shapes", HaloMode::shapes};
constexpr Way kFused{"fused", HaloMode::fused};
constexpr Way kFusedPerBlock{"fused_per_block", HaloMode::fused, HaloMessages::per_block};
constexpr Way kFusedAll{"fused_all", HaloMode::fused, HaloMessages::all};
constexpr Way kDirect{"direct", HaloMode::direct};

constexpr double kUnwritten = -1;

/// One rank's part: its exchange, its fields, and what is to be in them.
class Side {
 public:
  Side(Runtime& runtime, const HaloOptions& options, MemoryKind kind)
      : runtime_(runtime),
        options_(options),
        cut_{options.grid, options.divide, options.periodic, options.ghost},
        exchange(runtime, options) {
    for (int i = 0; i < exchange.blocks(); ++i) {
      // Large enough for others to map it.
      fields_.push_back(runtime.allocate(kind, std::max<std::size_t>(exchange.field_bytes(i), 16384)));
      buffers.emplace_back(fields_.back().part(0, exchange.field_bytes(i)));
    }
  }

  void fill(int cycle) {
    for (int i = 0; i < exchange.blocks(); ++i) {
      std::vector<double> content = expected(i, cycle, false);
      runtime_.copy(buffers[index(i)], std::span<const double>(content));
    }
  }

  void expect_filled(int cycle) {
    for (int i = 0; i < exchange.blocks(); ++i) {
      std::vector<double> content(exchange.field_bytes(i) / sizeof(double));
      runtime_.copy(Buffer(std::span(content)), buffers[index(i)]);
      EXPECT_EQ(content, expected(i, cycle, true)) << "block " << exchange.first_block() + i;
    }
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  /// The number of each cell in the grid, and of its variable. What no block owns is unwritten before and after; the
  /// ghosts of others are only before. Ghosts beyond an edge belong to the block there, and have numbers of their own.
  std::vector<double> expected(int i, int cycle, bool after) const {
    const int block = exchange.first_block() + i;
    const halo::Box cells = cut_.cells_of(block);
    const halo::Box owned = cut_.owned_by(block);
    const auto array = exchange.array_of(i);
    std::vector<double> content;
    for (std::size_t v = 0; v < options_.variables; ++v) {
      for (std::int64_t z = 0; z < array[2]; ++z) {
        for (std::int64_t y = 0; y < array[1]; ++y) {
          for (std::int64_t x = 0; x < array[0]; ++x) {
            const halo::Cells place{x, y, z};
            bool own = true;
            double number = static_cast<double>(v) + 10 * cycle;
            for (std::size_t d = 0; d < halo::kDims; ++d) {
              own = own && place[d] >= owned.low[d] && place[d] < owned.high[d];
              std::int64_t cell = cells.low[d] + place[d] - cut_.ghost[d];
              if (cut_.periodic[d]) cell = (cell + cut_.grid[d]) % cut_.grid[d];
              number = number * 100 + static_cast<double>(cell + 20);
            }
            content.push_back(own || after ? number : kUnwritten);
          }
        }
      }
    }
    return content;
  }

  Runtime& runtime_;
  HaloOptions options_;
  halo::Decomposition cut_;
  std::vector<Memory> fields_;

 public:
  HaloExchange exchange;
  std::vector<Buffer> buffers;
};

class HaloExchanges : public testing::TestWithParam<std::tuple<Case, Way>> {};

TEST_P(HaloExchanges, fill_every_ghost_with_the_cell_it_stands_for) {
  auto [test, way] = GetParam();
  test.options.mode = way.mode;
  test.options.messages = way.messages;
  InProcessJob job(test::ranks(test.ranks, test.kind == MemoryKind::emulated ? GpuChoice::emulated : GpuChoice::none));
  std::deque<Side> sides;
  for (int rank = 0; rank < test.ranks; ++rank) sides.emplace_back(job.rank(rank), test.options, test.kind);
  for (int cycle = 1; cycle <= 3; ++cycle) {
    std::vector<Task<void>> runs;
    for (Side& side : sides) side.fill(cycle);
    for (Side& side : sides) runs.push_back(side.exchange.run(side.buffers));
    for (Task<void>& run : runs) run.start();
    ASSERT_TRUE(job.run_until([&] {
      for (const Task<void>& run : runs) {
        if (!run.finished()) return false;
      }
      return true;
    }));
    for (Task<void>& run : runs) run.take();
    for (Side& side : sides) side.expect_filled(cycle);
  }
}

constexpr HaloOptions kPeriodic = {
    .grid = {9, 8, 7}, .divide = {3, 2, 2}, .periodic = {true, true, true}, .ghost = {2, 1, 3}, .variables = 3};
constexpr HaloOptions kOpen = {
    .grid = {9, 8, 7}, .divide = {2, 2, 1}, .periodic = {false, false, true}, .ghost = {1, 2, 1}, .variables = 2};
constexpr HaloOptions kFlat = {
    .grid = {9, 8, 1}, .divide = {2, 2, 1}, .periodic = {true, false, false}, .ghost = {1, 1, 0}};
/// Faces of more than a chunk, and rows along x of two cells: words of 16 bytes.
constexpr HaloOptions kWide = {
    .grid = {80, 40, 8}, .divide = {2, 2, 1}, .periodic = {true, true, true}, .ghost = {2, 1, 1}, .variables = 4};

INSTANTIATE_TEST_SUITE_P(Kinds, HaloExchanges,
                         testing::Combine(testing::Values(Case{"host_periodic", 2, MemoryKind::host, kPeriodic},
                                                          Case{"host_open", 4, MemoryKind::host, kOpen},
                                                          Case{"host_flat", 2, MemoryKind::host, kFlat},
                                                          Case{"host_alone", 1, MemoryKind::host, kPeriodic},
                                                          Case{"host_wide", 2, MemoryKind::host, kWide},
                                                          Case{"pinned_periodic", 3, MemoryKind::pinned, kPeriodic},
                                                          Case{"device_periodic", 2, MemoryKind::emulated, kPeriodic},
                                                          Case{"device_alone", 1, MemoryKind::emulated, kPeriodic},
                                                          Case{"device_wide", 2, MemoryKind::emulated, kWide},
                                                          Case{"device_open", 4, MemoryKind::emulated, kOpen}),
                                          testing::Values(kShapes, kFused, kFusedPerBlock, kFusedAll, kDirect)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + "_" + std::get<1>(test.param).name;
                         });

/// The text of the Error that it throws; with its status in front.
template <typename Call>
std::string refused(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(status_name(error.status())) + ": " + error.what();
  }
  return "not refused";
}

TEST(HaloExchange, refuses_a_division_that_the_processes_cannot_share) {
  InProcessJob job(test::ranks(2));
  const std::string why = refused([&] { HaloExchange(job.rank(0), {.grid = {9, 9, 9}, .divide = {3, 1, 1}}); });
  EXPECT_NE(why.find("invalid_argument: halo: divided by 3 x 1 x 1 the grid has 3 blocks"), std::string::npos) << why;
}

TEST(HaloExchange, refuses_fields_that_are_missing_too_small_or_mixed) {
  InProcessJob job(test::ranks(1));
  HaloExchange exchange(job.rank(0), {.grid = {4, 4, 4}, .divide = {2, 1, 1}});
  std::vector<double> field(exchange.field_bytes(0) / sizeof(double));
  const Buffer whole(field.data(), exchange.field_bytes(0), MemoryKind::host);
  const auto run = [&](std::vector<Buffer> fields) { return refused([&] { job.rank(0).run(exchange.run(fields)); }); };
  EXPECT_NE(run({whole}).find("invalid_argument: halo: 1 fields for the 2 blocks"), std::string::npos);
  EXPECT_NE(run({whole, Buffer(whole.data, 8, MemoryKind::host)}).find("invalid_argument: halo: the field of block 1"),
            std::string::npos);
  EXPECT_NE(run({whole, Buffer(whole.data, whole.bytes, MemoryKind::pinned)}).find("wrong_kind: halo:"),
            std::string::npos);
  EXPECT_EQ(run({whole, whole}), "not refused");  // what was refused has left nothing behind
}

TEST(HaloExchange, names_the_process_that_has_ended_and_stays_ended) {
  InProcessJob job(test::ranks(2));
  std::deque<Side> sides;
  const HaloOptions options{.grid = {200, 200, 4}, .divide = {2, 1, 1}, .periodic = {true, true, true}};
  for (int rank = 0; rank < 2; ++rank) sides.emplace_back(job.rank(rank), options, MemoryKind::host);
  Task<void> run = sides[0].exchange.run(sides[0].buffers);
  run.start();
  job.run(10);
  ASSERT_FALSE(run.finished());
  sides.pop_back();
  job.rank(1).worker().engine().shut_down();
  ASSERT_TRUE(job.run_until([&] { return run.finished(); }));
  const std::string first = refused([&] { run.take(); });
  EXPECT_NE(first.find("peer_lost: halo: the "), std::string::npos) << first;
  EXPECT_NE(first.find("rank 1"), std::string::npos) << first;
  EXPECT_EQ(refused([&] { job.rank(0).run(sides[0].exchange.run(sides[0].buffers)); }), first);
}

}  // namespace
}  // namespace brant
