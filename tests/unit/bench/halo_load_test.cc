#include <gtest/gtest.h>

#include "bench/halo/load.h"
#include "brant/base/status.h"
#include "brant/halo/halo_modes.h"

namespace brant::bench {
namespace {

/// The smallest cube of the paper: 64 blocks, one for each process.
HaloOptions cube() {
  return {.grid = {200, 200, 200}, .divide = {4, 4, 4}, .periodic = {true, true, true}, .variables = 3};
}

TEST(HaloLoad, a_block_of_the_paper_sends_26_messages_and_their_bytes) {
  const model::HaloLoad load = load_of(cube(), MemoryKind::host, 0, 64);
  EXPECT_EQ(load.messages, 26);
  EXPECT_EQ(load.sent_bytes, 374'592);
  EXPECT_EQ(load.smallest_bytes, 24);
  EXPECT_EQ(load.local_bytes, 0);
  EXPECT_TRUE(load.packs);
  EXPECT_FALSE(load.notifies);
}

TEST(HaloLoad, what_stays_within_a_process_is_no_message) {
  HaloOptions options = cube();
  const model::HaloLoad fused = load_of(options, MemoryKind::host, 1, 2);
  EXPECT_EQ(fused.messages, 1) << "all that goes to one process";
  EXPECT_EQ(fused.smallest_bytes, fused.sent_bytes);
  EXPECT_EQ(fused.sent_bytes + fused.local_bytes, 32 * 374'592);
  options.messages = HaloMessages::per_block;
  EXPECT_EQ(load_of(options, MemoryKind::host, 1, 2).messages, 2 * 16 * 9) << "two faces of 16 blocks, 9 beyond each";
  options.mode = HaloMode::direct;
  const model::HaloLoad direct = load_of(options, MemoryKind::cuda, 1, 2);
  EXPECT_EQ(direct.messages, 0) << "no CPU posts any";
  EXPECT_FALSE(direct.packs);
  EXPECT_EQ(direct.memory, "device");
  options.mode = HaloMode::stream;
  EXPECT_TRUE(load_of(options, MemoryKind::cuda, 1, 2).notifies);
  EXPECT_FALSE(load_of(options, MemoryKind::host, 1, 2).notifies);
}

TEST(HaloLoad, modes_launch_as_many_kernels_as_follow_each_other) {
  const auto on = [](HaloMode mode, MemoryKind kind) {
    HaloOptions options = cube();
    options.mode = mode;
    return load_of(options, kind, 0, 2);
  };
  const model::HaloLoad fused = on(HaloMode::fused, MemoryKind::cuda);
  EXPECT_EQ(fused.launches, 2);
  EXPECT_TRUE(fused.packs_first);
  EXPECT_EQ(on(HaloMode::direct, MemoryKind::cuda).launches, 1);
  for (const HaloMode mode : {HaloMode::graph, HaloMode::resident, HaloMode::stream, HaloMode::stacked}) {
    EXPECT_EQ(on(mode, MemoryKind::cuda).launches, 0) << halo_mode_name(mode);
    EXPECT_FALSE(on(mode, MemoryKind::cuda).packs_first) << halo_mode_name(mode);
  }
  EXPECT_FALSE(on(HaloMode::graph, MemoryKind::cuda).packs) << "it writes into the ghosts";
  EXPECT_EQ(on(HaloMode::fused, MemoryKind::host).launches, 0);
  EXPECT_EQ(load_of(cube(), MemoryKind::cuda, 0, 1).launches, 1) << "nothing comes that is unpacked";
}

TEST(HaloLoad, options_without_sense_are_refused) {
  HaloOptions options = cube();
  options.ghost = {51, 1, 1};
  EXPECT_THROW(static_cast<void>(load_of(options, MemoryKind::host, 0, 2)), Error);
}

}  // namespace
}  // namespace brant::bench
