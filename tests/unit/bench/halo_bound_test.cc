#include "bench/model/halo_bound.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "brant/base/status.h"

namespace brant::bench::model {
namespace {

constexpr Figure exactly(double value) { return {value, value, value}; }

/// 10 GB/s and 1 us between processes, copies of 20 GB/s, 0.1 us for each end of a message.
Parameters machine() {
  Parameters all;
  PathParameters path{.path = "shm", .from = "host", .to = "host", .postal = {}, .rate = {}, .best_gb_s = 10};
  path.postal.segments = {{exactly(1), exactly(1e-4)}};
  all.paths = {path};
  all.messages = {exactly(0.1), exactly(0.1), exactly(0.2), exactly(0.8)};
  all.copies = {{"host", 0.05, 20, 20}};
  return all;
}

HaloLoad load() { return {.memory = "host", .sent_bytes = 1e6, .messages = 10, .smallest_bytes = 1000}; }

double occupied(const HaloBound& bound, const std::string& resource) {
  for (const Occupied& each : bound.resources) {
    if (each.resource == resource) return each.us;
  }
  return -1;
}

TEST(HaloBound, the_link_binds_where_many_bytes_go) {
  HaloLoad many = load();
  many.packs = false;
  const HaloBound bound = bound_halo(machine(), many);
  EXPECT_EQ(bound.binds, "link");
  EXPECT_NEAR(occupied(bound, "link"), 100, 1e-9);
  EXPECT_NEAR(bound.us, 100 + 0.8, 1e-9) << "and the latency of the last message";
}

TEST(HaloBound, pack_and_unpack_of_the_smallest_message_cannot_be_hidden) {
  const HaloBound bound = bound_halo(machine(), load());
  EXPECT_NEAR(occupied(bound, "memory"), 100, 1e-9) << "packed once and unpacked once";
  EXPECT_NEAR(bound.us, 100 + 0.8 + 2 * 0.05, 1e-9);
}

TEST(HaloBound, the_progress_binds_where_many_messages_go) {
  HaloLoad small = load();
  small.sent_bytes = 100;
  small.messages = 1000;
  small.smallest_bytes = 0;
  const HaloBound bound = bound_halo(machine(), small);
  EXPECT_EQ(bound.binds, "progress");
  EXPECT_NEAR(bound.us, 1000 * 0.2 + 0.8, 1e-9);
  // (m - 1) g + alpha + n beta, and two copies.
  EXPECT_NEAR(bound.estimate_us, 999 * 0.2 + 1 + 1e-5 + 2 * 0.05 + 0.01, 1e-3);
}

TEST(HaloBound, the_estimate_is_never_below_the_bound) {
  for (const double bytes : {0.0, 1.0, 1e3, 1e6, 1e9}) {
    HaloLoad each = load();
    each.sent_bytes = bytes;
    const HaloBound bound = bound_halo(machine(), each);
    EXPECT_GE(bound.estimate_us, bound.us) << bytes;
  }
}

TEST(HaloBound, the_fastest_path_counts_and_staged_bytes_are_copied_down_and_up) {
  Parameters all = machine();
  PathParameters staged = all.paths.front();
  staged.path = "staged";
  staged.from = staged.to = "device";
  all.paths.push_back(staged);
  all.copies.push_back({"device", 1, 100, 100});
  all.copies.push_back({"down", 1, 5, 5});
  HaloLoad on_device = load();
  on_device.memory = "device";
  HaloBound bound = bound_halo(all, on_device);
  EXPECT_EQ(bound.binds, "copy down");
  EXPECT_NEAR(occupied(bound, "copy down"), 200, 1e-9);
  EXPECT_EQ(bound.unknown, std::vector<std::string>{"copy up"});
  staged.path = "copy_engine";
  staged.best_gb_s = 40;
  all.paths.push_back(staged);
  bound = bound_halo(all, on_device);
  EXPECT_EQ(occupied(bound, "copy down"), -1);
  EXPECT_NEAR(occupied(bound, "link"), 25, 1e-9);
}

TEST(HaloBound, rings_count_where_kernels_wait_for_the_cpu) {
  Parameters all = machine();
  HaloLoad ringing = load();
  ringing.notifies = true;
  const double without = bound_halo(all, load()).us;
  EXPECT_EQ(bound_halo(all, ringing).unknown, std::vector<std::string>{"notification"});
  all.notify = {2, 3};
  EXPECT_NEAR(bound_halo(all, ringing).us, without + 5, 1e-9);
}

/// A device: packs of 100 GB/s, 5 us for each kernel, 4 at least; copies by the driver are twice as fast.
Parameters device() {
  Parameters all = machine();
  all.paths.front().from = all.paths.front().to = "device";
  all.copies.push_back({"device", 1, 200, 200});
  PackParameters pack;
  pack.postal.segments = {{{5, 4, 6}, exactly(1e-5)}};
  pack.best_gb_s = 100;
  all.pack = pack;
  all.notify = {2, 3};
  return all;
}

const BoundPhase& phase(const HaloBound& bound, const std::string& name) {
  const auto found = std::ranges::find(bound.phases, name, &BoundPhase::phase);
  if (found == bound.phases.end()) throw Error(Status::not_found, name);
  return *found;
}

TEST(HaloBound, kernels_that_pack_first_are_phases_of_their_own) {
  HaloLoad fused = load();
  fused.memory = "device";
  fused.local_bytes = 5e5;
  fused.packs_first = true;
  fused.launches = 2;
  const HaloBound bound = bound_halo(device(), fused);
  EXPECT_NEAR(phase(bound, "pack").us, 4 + 15, 1e-9) << "all messages and what stays";
  EXPECT_EQ(phase(bound, "pack").binds, "memory");
  EXPECT_NEAR(phase(bound, "comm").us, 100 + 0.8, 1e-9);
  EXPECT_EQ(phase(bound, "comm").binds, "link");
  EXPECT_NEAR(phase(bound, "unpack").us, 4 + 10, 1e-9);
  EXPECT_NEAR(bound.us, 19 + 100.8 + 14, 1e-9);
  EXPECT_EQ(bound.binds, "link");
  EXPECT_NEAR(occupied(bound, "memory"), 25, 1e-9);
  EXPECT_NEAR(occupied(bound, "launch"), 8, 1e-9);
  EXPECT_NEAR(bound.estimate_us, (5 + 15) + (5 + 10) + 9 * 10 + 11, 1e-9);
}

TEST(HaloBound, a_launch_binds_where_little_is_packed) {
  HaloLoad fused = load();
  fused.memory = "device";
  fused.sent_bytes = 1000;
  fused.messages = 1;
  fused.packs_first = true;
  fused.launches = 2;
  const HaloBound bound = bound_halo(device(), fused);
  EXPECT_EQ(bound.binds, "launch");
  EXPECT_EQ(phase(bound, "pack").binds, "launch");
  EXPECT_EQ(phase(bound, "comm").binds, "latency");
}

TEST(HaloBound, the_device_packs_beside_messages_where_kernels_stay) {
  HaloLoad stream = load();
  stream.memory = "device";
  stream.sent_bytes = 1e7;
  stream.smallest_bytes = 1e6;
  stream.notifies = true;
  Parameters all = device();
  all.paths.front().best_gb_s = 400;
  const HaloBound bound = bound_halo(all, stream);
  EXPECT_EQ(bound.binds, "memory") << "packed and unpacked while messages travel";
  EXPECT_EQ(phase(bound, "comm").binds, "memory");
  EXPECT_NEAR(phase(bound, "comm").us, 200 + 0.8, 1e-9);
  EXPECT_NEAR(phase(bound, "pack").us, 10 + 2, 1e-9);
  EXPECT_NEAR(phase(bound, "unpack").us, 3 + 10, 1e-9);
  EXPECT_EQ(occupied(bound, "launch"), -1);
}

TEST(HaloBound, kernels_that_write_into_others_are_launched_once) {
  HaloLoad direct = load();
  direct.memory = "device";
  direct.packs = false;
  direct.messages = 0;
  direct.launches = 1;
  const HaloBound bound = bound_halo(device(), direct);
  EXPECT_NEAR(bound.us, 4 + 100, 1e-9);
  EXPECT_EQ(phase(bound, "pack").binds, "launch");
  EXPECT_EQ(bound.phases.size(), 2u);
  Parameters old = device();
  old.pack.reset();
  EXPECT_EQ(bound_halo(old, direct).unknown, std::vector<std::string>{"launch"});
  EXPECT_NEAR(bound_halo(old, direct).us, 100, 1e-9);
}

TEST(HaloBound, what_was_not_measured_is_said) {
  HaloLoad far = load();
  far.network_bytes = 10;
  EXPECT_EQ(bound_halo(machine(), far).unknown, std::vector<std::string>{"network"});
  far.memory = "device";
  EXPECT_THROW(static_cast<void>(bound_halo(machine(), far)), Error);
}

}  // namespace
}  // namespace brant::bench::model
