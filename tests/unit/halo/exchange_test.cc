// Exchanges between the ranks of a job in this process: every cell of every field, before and after.
#include <deque>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "brant/halo.h"
#include "halo_side.h"
#include "support/in_process_job.h"
#include "support/refused.h"

namespace brant {
namespace {

using test::bind;
using test::exchange;
using test::gpu_of;
using test::InProcessJob;
using test::kDirect;
using test::kFused;
using test::kFusedAll;
using test::kFusedPerBlock;
using test::kGraph;
using test::kResident;
using test::kShapes;
using test::kStacked;
using test::kStackedPerBlock;
using test::kStream;
using test::kStreamAll;
using test::kStreamPerBlock;
using test::refused;
using test::Side;
using test::sides_of;
using test::Way;

struct Case {
  const char* name;
  int ranks;
  MemoryKind kind;
  HaloOptions options;
};

class HaloExchanges : public testing::TestWithParam<std::tuple<Case, Way>> {};

TEST_P(HaloExchanges, fill_every_ghost_with_the_cell_it_stands_for) {
  auto [test, way] = GetParam();
  test.options.mode = way.mode;
  test.options.messages = way.messages;
  InProcessJob job(test::ranks(test.ranks, gpu_of(test.kind)));
  std::deque<Side> sides = sides_of(job, test.ranks, test.options, test.kind);
  for (int cycle = 1; cycle <= 3; ++cycle) {
    for (Side& side : sides) side.fill(cycle);
    exchange(job, sides);
    if (HasFatalFailure()) return;
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
/// Rows that begin at places of their own, with room between them.
constexpr HaloOptions kRoomy = {.grid = {9, 8, 7},
                                .divide = {1, 2, 2},
                                .periodic = {true, false, true},
                                .ghost = {1, 1, 1},
                                .variables = 2,
                                .row_step = 8,
                                .lead = 7};

/// Some 400 KB to each process: in mode stream several messages.
constexpr HaloOptions kGroups = {
    .grid = {40, 64, 64}, .divide = {2, 2, 2}, .periodic = {true, true, true}, .ghost = {1, 1, 1}, .variables = 6};

INSTANTIATE_TEST_SUITE_P(
    Kinds, HaloExchanges,
    testing::Combine(testing::Values(Case{"host_periodic", 2, MemoryKind::host, kPeriodic},
                                     Case{"host_open", 4, MemoryKind::host, kOpen},
                                     Case{"host_flat", 2, MemoryKind::host, kFlat},
                                     Case{"host_alone", 1, MemoryKind::host, kPeriodic},
                                     Case{"host_wide", 2, MemoryKind::host, kWide},
                                     Case{"pinned_periodic", 3, MemoryKind::pinned, kPeriodic},
                                     Case{"device_periodic", 2, test::device_memory(), kPeriodic},
                                     Case{"device_alone", 1, test::device_memory(), kPeriodic},
                                     Case{"device_wide", 2, test::device_memory(), kWide},
                                     Case{"device_groups", 2, test::device_memory(), kGroups},
                                     Case{"host_roomy", 2, MemoryKind::host, kRoomy},
                                     Case{"device_roomy", 2, test::device_memory(), kRoomy},
                                     Case{"device_open", 4, test::device_memory(), kOpen}),
                     testing::Values(kShapes, kFused, kFusedPerBlock, kFusedAll, kDirect, kGraph, kResident, kStream,
                                     kStreamPerBlock, kStreamAll, kStacked, kStackedPerBlock)),
    [](const auto& test) { return std::string(std::get<0>(test.param).name) + "_" + std::get<1>(test.param).name; });

TEST(HaloExchange, refuses_a_division_that_the_processes_cannot_share) {
  InProcessJob job(test::ranks(2));
  const std::string why = refused([&] { HaloExchange(job.rank(0), {.grid = {9, 9, 9}, .divide = {3, 1, 1}}); });
  EXPECT_NE(why.find("invalid_argument: halo: divided by 3 x 1 x 1 the grid has 3 blocks"), std::string::npos) << why;
}

TEST(HaloExchange, refuses_rows_that_are_no_distance_apart) {
  InProcessJob job(test::ranks(1));
  const std::string why = refused([&] { HaloExchange(job.rank(0), {.grid = {9, 9, 9}, .row_step = 0}); });
  EXPECT_NE(why.find("invalid_argument: halo: rows a multiple of 0 cells apart"), std::string::npos) << why;
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

TEST(HaloStream, sends_some_groups_to_each_process) {
  InProcessJob job(test::ranks(2));
  HaloOptions options = kGroups;
  options.mode = HaloMode::stream;
  EXPECT_EQ(HaloExchange(job.rank(0), options).messages(), 4u);
  options.messages = HaloMessages::per_block;
  EXPECT_EQ(HaloExchange(job.rank(0), options).messages(), 16u);  // each of 4 blocks to the 4 others
}

/// On a GPU a load waits for kernels that run, and those wait for the copies that it is for.
TEST(HaloStream, loads_no_kernel_while_its_own_stay) {
  for (const test::Way& way : {test::kStreamAll, test::Way{"stacked_all", HaloMode::stacked, HaloMessages::all}}) {
    InProcessJob job(test::ranks(1, test::gpu_of_tests()));
    HaloOptions options = kPeriodic;
    options.mode = way.mode;
    options.messages = way.messages;
    testing::internal::CaptureStderr();
    std::deque<Side> sides = sides_of(job, 1, options, test::device_memory());
    sides[0].fill(1);
    exchange(job, sides);
    sides[0].expect_filled(1);
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(log.find("is loaded while"), std::string::npos) << way.name << ": " << log;
  }
}

TEST(HaloDirect, gives_a_plan_to_kernels_of_the_program_in_mode_direct_alone) {
  for (const auto& [mode, kind, why] :
       {std::tuple(HaloMode::fused, test::device_memory(), "not_supported: halo: kernels of the program exchange"),
        std::tuple(HaloMode::resident, test::device_memory(), "not_supported: halo: kernels of the program exchange"),
        std::tuple(HaloMode::direct, MemoryKind::host, "not_supported: halo: kernels of the program exchange"),
        std::tuple(HaloMode::direct, test::device_memory(), "not refused")}) {
    InProcessJob job(test::ranks(1, test::gpu_of_tests()));
    std::deque<Side> sides =
        sides_of(job, 1, {.grid = {20, 20, 20}, .periodic = {true, true, true}, .mode = mode}, kind);
    if (mode == HaloMode::direct) {
      const std::string early = refused([&] { static_cast<void>(sides[0].exchange.device(3)); });
      EXPECT_NE(early.find("invalid_argument: halo: no kernel can exchange before"), std::string::npos) << early;
    }
    bind(job, sides);
    if (testing::Test::HasFatalFailure()) return;
    const std::string told = refused([&] { static_cast<void>(sides[0].exchange.device(3)); });
    EXPECT_EQ(told.find(why), 0u) << told;
    EXPECT_NE(refused([&] { static_cast<void>(sides[0].exchange.device(0)); }), "not refused");
  }
}

}  // namespace
}  // namespace brant
