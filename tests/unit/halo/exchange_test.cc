// Exchanges between the ranks of a job in this process: every cell of every field, before and after.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "brant/core/device.h"
#include "brant/halo.h"
#include "core/engine.h"
#include "models/halo/decomposition.h"
#include "port/memory.h"
#include "support/in_process_job.h"
#include "support/refused.h"

namespace brant {
namespace {

using test::InProcessJob;
using test::refused;

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
constexpr Way kGraph{"graph", HaloMode::graph};
constexpr Way kResident{"resident", HaloMode::resident};
constexpr Way kStream{"stream", HaloMode::stream};
constexpr Way kStreamPerBlock{"stream_per_block", HaloMode::stream, HaloMessages::per_block};
constexpr Way kStreamAll{"stream_all", HaloMode::stream, HaloMessages::all};
constexpr Way kStacked{"stacked", HaloMode::stacked};
constexpr Way kStackedPerBlock{"stacked_per_block", HaloMode::stacked, HaloMessages::per_block};

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

  /// Fields elsewhere, with the same content.
  void move_fields() {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      Memory moved = runtime_.allocate(fields_[i].kind(), fields_[i].bytes());
      old_fields_.push_back(std::exchange(fields_[i], std::move(moved)));
      buffers[i] = fields_[i].part(0, buffers[i].bytes);
    }
  }

  void drop_fields() { fields_.clear(); }

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
    std::vector<double> content(options_.lead, kUnwritten);
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
          while ((content.size() - options_.lead) % options_.row_step != 0) content.push_back(kUnwritten);
        }
      }
    }
    return content;
  }

  Runtime& runtime_;
  HaloOptions options_;
  halo::Decomposition cut_;
  std::vector<Memory> fields_;
  std::vector<Memory> old_fields_;

 public:
  HaloExchange exchange;
  std::vector<Buffer> buffers;
};

std::deque<Side> sides_of(InProcessJob& job, int ranks, const HaloOptions& options, MemoryKind kind) {
  std::deque<Side> sides;
  for (int rank = 0; rank < ranks; ++rank) sides.emplace_back(job.rank(rank), options, kind);
  return sides;
}

GpuChoice gpu_of(MemoryKind kind) { return kind == MemoryKind::emulated ? GpuChoice::emulated : GpuChoice::none; }

/// All of them do it, to its end.
void together(InProcessJob& job, std::vector<Task<void>> tasks) {
  for (Task<void>& task : tasks) task.start();
  ASSERT_TRUE(job.run_until(
      [&] { return std::all_of(tasks.begin(), tasks.end(), [](const Task<void>& task) { return task.finished(); }); }));
  for (Task<void>& task : tasks) task.take();
}

void exchange(InProcessJob& job, std::deque<Side>& sides) {
  std::vector<Task<void>> runs;
  for (Side& side : sides) runs.push_back(side.exchange.run(side.buffers));
  together(job, std::move(runs));
}

void bind(InProcessJob& job, std::deque<Side>& sides) {
  std::vector<Task<void>> binds;
  for (Side& side : sides) binds.push_back(side.exchange.bind(side.buffers));
  together(job, std::move(binds));
}

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
    testing::Combine(
        testing::Values(
            Case{"host_periodic", 2, MemoryKind::host, kPeriodic}, Case{"host_open", 4, MemoryKind::host, kOpen},
            Case{"host_flat", 2, MemoryKind::host, kFlat}, Case{"host_alone", 1, MemoryKind::host, kPeriodic},
            Case{"host_wide", 2, MemoryKind::host, kWide}, Case{"pinned_periodic", 3, MemoryKind::pinned, kPeriodic},
            Case{"device_periodic", 2, MemoryKind::emulated, kPeriodic},
            Case{"device_alone", 1, MemoryKind::emulated, kPeriodic},
            Case{"device_wide", 2, MemoryKind::emulated, kWide},
            Case{"device_groups", 2, MemoryKind::emulated, kGroups}, Case{"host_roomy", 2, MemoryKind::host, kRoomy},
            Case{"device_roomy", 2, MemoryKind::emulated, kRoomy}, Case{"device_open", 4, MemoryKind::emulated, kOpen}),
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

TEST(HaloDirect, does_many_exchanges_in_one_run) {
  constexpr HaloOptions kSmall{.grid = {20, 20, 20}, .divide = {2, 1, 1}, .periodic = {true, true, true}};
  constexpr HaloOptions kThree{
      .grid = {60, 64, 64}, .divide = {3, 2, 1}, .periodic = {true, true, true}, .variables = 4};
  for (const HaloMode mode : {HaloMode::resident, HaloMode::graph, HaloMode::direct, HaloMode::fused}) {
    for (HaloOptions options : {kSmall, kThree}) {  // by one block of a kernel that stays, and by several
      const int ranks = options.divide[0];
      options.mode = mode;
      InProcessJob job(test::ranks(ranks, GpuChoice::emulated));
      std::deque<Side> sides = sides_of(job, ranks, options, MemoryKind::emulated);
      for (int cycle = 1; cycle <= 2; ++cycle) {
        for (Side& side : sides) side.fill(cycle);
        std::vector<Task<void>> runs;
        // More than are launched at once.
        for (Side& side : sides) runs.push_back(side.exchange.run(side.buffers, 70));
        together(job, std::move(runs));
        if (testing::Test::HasFatalFailure()) return;
        for (Side& side : sides) side.expect_filled(cycle);
      }
    }
  }
}

TEST(HaloDirect, gives_a_plan_to_kernels_of_the_program_in_mode_direct_alone) {
  for (const auto& [mode, kind, why] :
       {std::tuple(HaloMode::fused, MemoryKind::emulated, "not_supported: halo: kernels of the program exchange"),
        std::tuple(HaloMode::resident, MemoryKind::emulated, "not_supported: halo: kernels of the program exchange"),
        std::tuple(HaloMode::direct, MemoryKind::host, "not_supported: halo: kernels of the program exchange"),
        std::tuple(HaloMode::direct, MemoryKind::emulated, "not refused")}) {
    InProcessJob job(test::ranks(1, GpuChoice::emulated));
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

/// Rank 1 ends while rank 0 exchanges, whose failure becomes `first`.
void end_rank_1_under_way(InProcessJob& job, std::deque<Side>& sides, std::string& first) {
  Task<void> run = sides[0].exchange.run(sides[0].buffers);
  run.start();
  job.run(10);
  ASSERT_FALSE(run.finished());
  sides.pop_back();
  job.rank(1).worker().engine().shut_down();
  ASSERT_TRUE(job.run_until([&] { return run.finished(); }));
  first = refused([&] { run.take(); });
  EXPECT_NE(first.find("peer_lost: halo: the "), std::string::npos) << first;
  EXPECT_NE(first.find("rank 1"), std::string::npos) << first;
}

/// In one kind of memory.
struct Place {
  const char* name;
  MemoryKind kind;
};

class HaloModes : public testing::TestWithParam<std::tuple<Place, Way>> {
 protected:
  static constexpr HaloOptions kTwoBlocks{.grid = {200, 200, 4}, .divide = {2, 1, 1}, .periodic = {true, true, true}};

  static MemoryKind kind() { return std::get<0>(GetParam()).kind; }
  static HaloMode mode() { return std::get<1>(GetParam()).mode; }
  static HaloOptions options() {
    HaloOptions chosen = kTwoBlocks;
    chosen.mode = mode();
    chosen.messages = std::get<1>(GetParam()).messages;
    return chosen;
  }
};

TEST_P(HaloModes, take_other_fields) {
  InProcessJob job(test::ranks(2, gpu_of(kind())));
  std::deque<Side> sides = sides_of(job, 2, options(), kind());
  for (int cycle = 1; cycle <= 3; ++cycle) {
    for (Side& side : sides) side.fill(cycle);
    exchange(job, sides);
    if (HasFatalFailure()) return;
    for (Side& side : sides) side.expect_filled(cycle);
    for (Side& side : sides) side.move_fields();
    if (mode() == HaloMode::direct || mode() == HaloMode::graph || mode() == HaloMode::resident) {
      const std::string why = refused([&] { job.rank(0).run(sides[0].exchange.run(sides[0].buffers)); });
      EXPECT_NE(why.find("invalid_argument: halo: these are not the fields"), std::string::npos) << why;
    }
    bind(job, sides);
    if (HasFatalFailure()) return;
  }
}

/// Alone, with nothing to wait for between a binding and the next exchange.
TEST_P(HaloModes, take_other_fields_within_one_task) {
  InProcessJob job(test::ranks(1, gpu_of(kind())));
  HaloOptions alone = options();
  alone.divide = {1, 1, 1};
  std::deque<Side> sides = sides_of(job, 1, alone, kind());
  const auto twice = [](Side& side) -> Task<void> {
    side.fill(1);
    co_await side.exchange.run(side.buffers);
    side.move_fields();
    side.fill(2);
    co_await side.exchange.bind(side.buffers);
    co_await side.exchange.run(side.buffers);
  };
  job.rank(0).run(twice(sides[0]));
  sides[0].expect_filled(2);
}

TEST_P(HaloModes, name_the_process_that_has_ended_and_stay_ended) {
  InProcessJob job(test::ranks(2, gpu_of(kind())));
  std::deque<Side> sides = sides_of(job, 2, options(), kind());
  exchange(job, sides);
  if (HasFatalFailure()) return;
  std::string first;
  end_rank_1_under_way(job, sides, first);
  if (HasFatalFailure()) return;
  EXPECT_EQ(refused([&] { job.rank(0).run(sides[0].exchange.run(sides[0].buffers)); }), first);
}

TEST_P(HaloModes, name_the_process_that_ends_before_the_first_exchange) {
  InProcessJob job(test::ranks(2, gpu_of(kind())));
  std::deque<Side> sides = sides_of(job, 2, options(), kind());
  std::string first;
  end_rank_1_under_way(job, sides, first);
}

TEST_P(HaloModes, leave_nothing_behind_when_a_run_is_abandoned) {
  InProcessJob job(test::ranks(2, gpu_of(kind())));
  std::deque<Side> sides = sides_of(job, 2, options(), kind());
  exchange(job, sides);
  if (HasFatalFailure()) return;
  {
    Task<void> run = sides[0].exchange.run(sides[0].buffers);
    run.start();
    job.run(10);
    ASSERT_FALSE(run.finished());
  }
  const std::string again = refused([&] { job.rank(0).run(sides[0].exchange.run(sides[0].buffers)); });
  EXPECT_NE(again.find("canceled: halo: "), std::string::npos) << again;
}

TEST_P(HaloModes, outlive_their_fields) {
  InProcessJob job(test::ranks(2, gpu_of(kind())));
  std::deque<Side> sides = sides_of(job, 2, options(), kind());
  exchange(job, sides);
  if (HasFatalFailure()) return;
  const void* const field = sides[0].buffers[0].data;
  for (Side& side : sides) side.drop_fields();
  const bool stays = kind() == MemoryKind::emulated &&
                     (mode() == HaloMode::resident || mode() == HaloMode::stream || mode() == HaloMode::stacked);
  EXPECT_EQ(job.rank(0).device().inner().query(field).ok(), stays);
  sides.clear();
  for (int rank = 0; rank < 2; ++rank) job.rank(rank).tidy();
  EXPECT_FALSE(job.rank(0).device().inner().query(field).ok());
}

INSTANTIATE_TEST_SUITE_P(
    Modes, HaloModes,
    testing::Combine(testing::Values(Place{"host", MemoryKind::host}, Place{"device", MemoryKind::emulated}),
                     testing::Values(kShapes, kFused, kDirect, kGraph, kResident, kStream, kStreamPerBlock, kStacked)),
    [](const auto& test) { return std::string(std::get<0>(test.param).name) + "_" + std::get<1>(test.param).name; });

constexpr HaloOptions kDirectly{.grid = {20, 20, 20},
                                .divide = {2, 1, 1},
                                .periodic = {true, true, true},
                                .mode = HaloMode::direct,
                                .patience = std::chrono::milliseconds(200)};

TEST(HaloDirect, gives_up_and_names_who_has_not_come_in_time) {
  InProcessJob job(test::ranks(2, GpuChoice::emulated));
  std::deque<Side> sides = sides_of(job, 2, kDirectly, MemoryKind::emulated);
  exchange(job, sides);
  if (testing::Test::HasFatalFailure()) return;
  Task<void> run = sides[0].exchange.run(sides[0].buffers);
  run.start();
  ASSERT_TRUE(job.run_until([&] { return run.finished(); }));
  const std::string why = refused([&] { run.take(); });
  EXPECT_NE(why.find("timed_out: halo: the exchange 2 of mode direct was given up after 0.2 s: rank 1, whose blocks 1 "
                     "exchange with blocks 0 of this process has not begun it"),
            std::string::npos)
      << why;
  // The other one hears of that, and not by its own patience.
  const std::string told = refused([&] {
    Task<void> late = sides[1].exchange.run(sides[1].buffers);
    late.start();
    ASSERT_TRUE(job.run_until([&] { return late.finished(); }));
    late.take();
  });
  EXPECT_NE(told.find("peer_lost: halo: the exchange "), std::string::npos) << told;
  EXPECT_NE(told.find("was given up by rank 0"), std::string::npos) << told;
}

/// Kernels that wait for those of another process: nobody may wait for the device meanwhile.
TEST(HaloDirect, keeps_memory_that_is_given_back_while_kernels_wait_for_a_neighbour) {
  for (const HaloMode mode : {HaloMode::direct, HaloMode::graph}) {
    InProcessJob job(test::ranks(2, GpuChoice::emulated));
    HaloOptions options = kDirectly;
    options.mode = mode;
    options.patience = std::chrono::seconds(20);
    std::deque<Side> sides = sides_of(job, 2, options, MemoryKind::emulated);
    exchange(job, sides);
    if (testing::Test::HasFatalFailure()) return;
    Engine& engine = job.rank(0).worker().engine();
    EXPECT_FALSE(engine.deferrals().kernels_wait());
    Memory memory = job.rank(0).allocate(MemoryKind::emulated, 4096);
    const void* const data = memory.data();
    Task<void> run = sides[0].exchange.run(sides[0].buffers);
    run.start();
    EXPECT_TRUE(engine.deferrals().kernels_wait());
    memory = {};
    EXPECT_TRUE(job.rank(0).device().inner().query(data).ok());
    Task<void> other = sides[1].exchange.run(sides[1].buffers);
    other.start();
    ASSERT_TRUE(job.run_until([&] { return run.finished() && other.finished(); }));
    run.take();
    other.take();
    EXPECT_FALSE(engine.deferrals().kernels_wait());
    EXPECT_FALSE(engine.late_frees().kernels_stay());
    job.rank(0).tidy();
    EXPECT_FALSE(job.rank(0).device().inner().query(data).ok());
    {
      Task<void> abandoned = sides[0].exchange.run(sides[0].buffers);
      abandoned.start();
      EXPECT_TRUE(engine.late_frees().kernels_stay());
    }
    EXPECT_FALSE(engine.deferrals().kernels_wait());
    EXPECT_FALSE(engine.late_frees().kernels_stay());
  }
}

TEST(HaloGraph, gives_up_many_exchanges_when_the_first_is_late) {
  InProcessJob job(test::ranks(2, GpuChoice::emulated));
  HaloOptions options = kDirectly;
  options.mode = HaloMode::graph;
  std::deque<Side> sides = sides_of(job, 2, options, MemoryKind::emulated);
  exchange(job, sides);
  if (testing::Test::HasFatalFailure()) return;
  const auto begin = std::chrono::steady_clock::now();
  Task<void> run = sides[0].exchange.run(sides[0].buffers, 50);
  run.start();
  ASSERT_TRUE(job.run_until([&] { return run.finished(); }));
  const std::string why = refused([&] { run.take(); });
  EXPECT_NE(why.find("timed_out: halo: the exchange "), std::string::npos) << why;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));  // and not after 50 times 0.2 s
}

TEST(HaloDirect, ends_well_where_a_neighbour_has_ended_well_and_left) {
  InProcessJob job(test::ranks(2, GpuChoice::emulated));
  std::deque<Side> sides = sides_of(job, 2, kDirectly, MemoryKind::emulated);
  for (Side& side : sides) side.fill(1);
  std::vector<Task<void>> runs;
  for (Side& side : sides) runs.push_back(side.exchange.run(side.buffers));
  for (Task<void>& run : runs) run.start();
  ASSERT_TRUE(job.run_until([&] { return runs[1].finished(); }));
  runs[1].take();
  sides[1].expect_filled(1);
  sides.pop_back();
  ASSERT_TRUE(job.run_until([&] { return runs[0].finished(); }));
  runs[0].take();
  sides[0].expect_filled(1);
}

TEST(HaloDirect, refuses_fields_that_others_cannot_map_in_all_processes) {
  InProcessJob job(test::ranks(2));
  std::deque<Side> sides = sides_of(job, 2, kDirectly, MemoryKind::host);
  std::vector<std::byte> heap(sides[0].exchange.field_bytes(0));
  const Buffer field(heap.data(), heap.size(), MemoryKind::host);
  Task<void> own = sides[0].exchange.run(std::span(&field, 1));
  Task<void> other = sides[1].exchange.run(sides[1].buffers);
  own.start();
  other.start();
  ASSERT_TRUE(job.run_until([&] { return own.finished() && other.finished(); }));
  const std::string why = refused([&] { own.take(); });
  EXPECT_NE(why.find("not_supported: halo: other processes cannot write into the field of block 0"), std::string::npos)
      << why;
  const std::string told = refused([&] { other.take(); });
  EXPECT_NE(told.find("not_supported: halo: rank 0 could not bind its fields"), std::string::npos) << told;
}

}  // namespace
}  // namespace brant
