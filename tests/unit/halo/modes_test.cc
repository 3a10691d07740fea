// Lives of exchanges in every mode: other fields, those that are abandoned, processes that end, come late or refuse.
#include <chrono>
#include <deque>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "brant/core/device.h"
#include "brant/halo.h"
#include "core/engine.h"
#include "halo_side.h"
#include "port/memory.h"
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
using test::kGraph;
using test::kResident;
using test::kShapes;
using test::kStacked;
using test::kStream;
using test::kStreamPerBlock;
using test::refused;
using test::Side;
using test::sides_of;
using test::together;
using test::Way;

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
  const bool stays = kind() == test::device_memory() &&
                     (mode() == HaloMode::resident || mode() == HaloMode::stream || mode() == HaloMode::stacked);
  EXPECT_EQ(job.rank(0).device().inner().query(field).ok(), stays);
  sides.clear();
  for (int rank = 0; rank < 2; ++rank) job.rank(rank).tidy();
  EXPECT_FALSE(job.rank(0).device().inner().query(field).ok());
}

INSTANTIATE_TEST_SUITE_P(
    Modes, HaloModes,
    testing::Combine(testing::Values(Place{"host", MemoryKind::host}, Place{"device", test::device_memory()}),
                     testing::Values(kShapes, kFused, kDirect, kGraph, kResident, kStream, kStreamPerBlock, kStacked)),
    [](const auto& test) { return std::string(std::get<0>(test.param).name) + "_" + std::get<1>(test.param).name; });

constexpr HaloOptions kDirectly{.grid = {20, 20, 20},
                                .divide = {2, 1, 1},
                                .periodic = {true, true, true},
                                .mode = HaloMode::direct,
                                .patience = std::chrono::milliseconds(200)};

TEST(HaloDirect, does_many_exchanges_in_one_run) {
  constexpr HaloOptions kSmall{.grid = {20, 20, 20}, .divide = {2, 1, 1}, .periodic = {true, true, true}};
  constexpr HaloOptions kThree{
      .grid = {24, 32, 40}, .divide = {3, 2, 1}, .periodic = {true, true, true}, .variables = 4};
  // More than goes in lines, by all blocks together.
  constexpr HaloOptions kLarge{
      .grid = {12, 96, 96}, .divide = {3, 1, 1}, .periodic = {true, true, true}, .variables = 4};
  for (const HaloMode mode : {HaloMode::resident, HaloMode::graph, HaloMode::direct, HaloMode::fused}) {
    for (HaloOptions options : {kSmall, kThree, kLarge}) {  // by one block of a kernel that stays, and by several
      const int ranks = options.divide[0];
      options.mode = mode;
      InProcessJob job(test::ranks(ranks, test::gpu_of_tests()));
      std::deque<Side> sides = sides_of(job, ranks, options, test::device_memory());
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

TEST(HaloDirect, leaves_exchanges_of_own_kernels_to_those) {
  InProcessJob job(test::ranks(2, test::gpu_of_tests()));
  HaloOptions options = kDirectly;
  options.own_kernels = true;
  std::deque<Side> sides = sides_of(job, 2, options, test::device_memory());
  bind(job, sides);
  if (testing::Test::HasFatalFailure()) return;
  const std::string why = refused([&] { job.rank(0).run(sides[0].exchange.run(sides[0].buffers)); });
  EXPECT_EQ(why.find("invalid_argument: halo: kernels of the program do the exchanges of HaloOptions::own_kernels"), 0u)
      << why;
}

TEST(HaloDirect, names_who_exchanges_with_kernels_of_its_own_alone) {
  InProcessJob job(test::ranks(2, test::gpu_of_tests()));
  HaloOptions options = kDirectly;
  std::deque<Side> sides;
  for (int rank = 0; rank < 2; ++rank) {
    options.own_kernels = rank == 1;
    sides.emplace_back(job.rank(rank), options, test::device_memory());
  }
  std::deque<Task<void>> bindings;
  for (Side& side : sides) bindings.push_back(side.exchange.bind(side.buffers));
  for (Task<void>& binding : bindings) binding.start();
  ASSERT_TRUE(job.run_until([&] { return bindings[0].finished() && bindings[1].finished(); }));
  const std::string why = refused([&] { bindings[0].take(); });
  EXPECT_EQ(why.find("invalid_argument: halo: rank 1 exchanges 968 words with kernels of its own, and this process 0"),
            0u)
      << why;
  EXPECT_NE(refused([&] { bindings[1].take(); }).find("HaloOptions::own_kernels"), std::string::npos);
}

TEST(HaloDirect, gives_up_and_names_who_has_not_come_in_time) {
  InProcessJob job(test::ranks(2, test::gpu_of_tests()));
  std::deque<Side> sides = sides_of(job, 2, kDirectly, test::device_memory());
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

/// Nobody writes any more into memory of a process to which its failure has been told.
TEST(HaloDirect, fails_when_all_neighbours_have_stopped) {
  constexpr HaloOptions kThree{.grid = {30, 16, 16}, .divide = {3, 1, 1}, .periodic = {true, true, true}};
  for (const HaloMode mode : {HaloMode::resident, HaloMode::graph, HaloMode::direct}) {
    InProcessJob job(test::ranks(3, test::gpu_of_tests()));
    HaloOptions options = kThree;
    options.mode = mode;
    options.patience = std::chrono::milliseconds(200);
    std::deque<Side> sides = sides_of(job, 1, options, test::device_memory());
    options.patience = std::chrono::minutes(10);
    for (const int rank : {1, 2}) sides.emplace_back(job.rank(rank), options, test::device_memory());
    exchange(job, sides);
    if (testing::Test::HasFatalFailure()) return;
    // Rank 1 waits in its kernel, and rank 2 does nothing.
    Task<void> other = sides[1].exchange.run(sides[1].buffers);
    other.start();
    Task<void> run = sides[0].exchange.run(sides[0].buffers);
    run.start();
    ASSERT_TRUE(job.run_until([&] { return run.finished(); }));
    EXPECT_FALSE(job.rank(1).worker().engine().late_frees().kernels_stay());
    ASSERT_TRUE(job.run_until([&] { return other.finished(); }));
    const std::string why = refused([&] { run.take(); });
    EXPECT_NE(why.find("timed_out: halo: the exchange 2 of mode direct was given up after 0.2 s: rank 2"),
              std::string::npos)
        << why;
    const std::string told = refused([&] { other.take(); });
    EXPECT_NE(told.find("peer_lost: halo: the exchange 2 of mode direct was given up by rank 0"), std::string::npos)
        << told;
    const std::string late = refused([&] { job.rank(2).run(sides[2].exchange.run(sides[2].buffers)); });
    EXPECT_NE(late.find("peer_lost: halo: the exchange 2 of mode direct was given up by rank "), std::string::npos)
        << late;
  }
}

/// Kernels that wait for those of another process: nobody may wait for the device meanwhile.
TEST(HaloDirect, keeps_memory_that_is_given_back_while_kernels_wait_for_a_neighbour) {
  for (const HaloMode mode : {HaloMode::direct, HaloMode::graph}) {
    InProcessJob job(test::ranks(2, test::gpu_of_tests()));
    HaloOptions options = kDirectly;
    options.mode = mode;
    options.patience = std::chrono::seconds(20);
    std::deque<Side> sides = sides_of(job, 2, options, test::device_memory());
    exchange(job, sides);
    if (testing::Test::HasFatalFailure()) return;
    Engine& engine = job.rank(0).worker().engine();
    EXPECT_FALSE(engine.deferrals().kernels_wait());
    Memory memory = job.rank(0).allocate(test::device_memory(), 4096);
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
  InProcessJob job(test::ranks(2, test::gpu_of_tests()));
  HaloOptions options = kDirectly;
  options.mode = HaloMode::graph;
  std::deque<Side> sides = sides_of(job, 2, options, test::device_memory());
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
  InProcessJob job(test::ranks(2, test::gpu_of_tests()));
  std::deque<Side> sides = sides_of(job, 2, kDirectly, test::device_memory());
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
