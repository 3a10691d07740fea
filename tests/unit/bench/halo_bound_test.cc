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

TEST(HaloBound, what_was_not_measured_is_said) {
  HaloLoad far = load();
  far.network_bytes = 10;
  EXPECT_EQ(bound_halo(machine(), far).unknown, std::vector<std::string>{"network"});
  far.memory = "device";
  EXPECT_THROW(static_cast<void>(bound_halo(machine(), far)), Error);
}

}  // namespace
}  // namespace brant::bench::model
