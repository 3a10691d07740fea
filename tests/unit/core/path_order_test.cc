#include "core/paths/path_order.h"

#include <gtest/gtest.h>

#include "core/paths/path_choice.h"

namespace brant {
namespace {

constexpr EndPair kHost{false, false};
constexpr EndPair kDevice{true, true};

PathQuery host_query(std::size_t bytes) {
  PathQuery query;
  query.bytes = bytes;
  query.shm_open = true;
  return query;
}

PathQuery device_query(std::size_t bytes) {
  PathQuery query = host_query(bytes);
  query.kind = MemoryKind::cuda;
  query.peer_maps = true;
  query.courier_bytes = 4096;
  return query;
}

TEST(PathOrder, the_least_predicted_time_wins_from_the_very_byte_on) {
  Calibration calibration;
  for (const auto& [bytes, us] : {CostPoint{1, 1}, CostPoint{1'000'000, 1}}) {
    calibration.add(Path::shm, kHost, {bytes, us});
    calibration.add(Path::ucx, kHost, {bytes, bytes == 1 ? 0.1 : 10});
  }
  const PathOrder order(calibration);
  // ucx grows by 100 in 6 decades; up to 8 KiB and from 4 MiB on a tie goes to shm, between to ucx.
  std::size_t crossed = 0;
  for (std::size_t bytes = 1; bytes < 2000; ++bytes) {
    const Path path = choose_path(host_query(bytes), order).path;
    const double ucx = *calibration.predict(Path::ucx, kHost, bytes);
    const bool shm_wins = 1 <= std::min(ucx, 1.0) * (1 + kPathTie);
    EXPECT_EQ(path, shm_wins ? Path::shm : Path::ucx) << bytes;
    if (crossed == 0 && path == Path::shm) crossed = bytes;
  }
  EXPECT_NEAR(static_cast<double>(crossed), 864, 2) << "where ucx takes 1/1.05 us";
  EXPECT_EQ(choose_path(host_query(std::size_t{1} << 30), order).path, Path::shm);
}

TEST(PathOrder, ties_go_to_the_order_without_a_calibration) {
  for (const double shm_us : {0.96, 1.0, 1.04}) {
    Calibration calibration;
    calibration.add(Path::ucx, kHost, {1, 1});
    calibration.add(Path::shm, kHost, {1, shm_us});
    const PathOrder order(calibration);
    EXPECT_EQ(choose_path(host_query(1), order).path, Path::shm) << shm_us;
    EXPECT_EQ(choose_path(host_query(kShmSmallBytes), order).path, Path::shm) << shm_us;
    EXPECT_EQ(choose_path(host_query(kShmSmallBytes + 1), order).path, Path::ucx) << shm_us;
    EXPECT_EQ(choose_path(host_query(kShmLargeBytes), order).path, Path::shm) << shm_us;
  }
  Calibration clear;
  clear.add(Path::ucx, kHost, {1, 1});
  clear.add(Path::shm, kHost, {1, 1.06});
  EXPECT_EQ(choose_path(host_query(1), PathOrder(clear)).path, Path::ucx);
}

TEST(PathOrder, what_was_not_measured_comes_after_what_was) {
  Calibration calibration;
  calibration.add(Path::staged, kDevice, {8, 1});
  calibration.add(Path::ucx, kDevice, {8, 2});
  const PathOrder order(calibration);
  const PathOrder::Order expected = {Path::staged, Path::ucx, Path::courier, Path::copy_engine, Path::shm};
  EXPECT_EQ(order.at(kDevice, 100), expected);
  EXPECT_EQ(order.at(kHost, 100), PathOrder::defaults().at(kHost, 100)) << "nothing measured: as before";
}

TEST(PathOrder, a_fast_path_that_cannot_serve_is_passed_over) {
  Calibration calibration;
  calibration.add(Path::courier, kDevice, {8, 1});
  calibration.add(Path::copy_engine, kDevice, {8, 4});
  calibration.add(Path::ucx, kDevice, {8, 2});
  const PathOrder order(calibration);
  EXPECT_EQ(choose_path(device_query(4096), order).path, Path::courier);
  EXPECT_EQ(choose_path(device_query(4097), order).path, Path::ucx) << "more than the courier takes";
  PathQuery query = device_query(4097);
  query.wire_takes_kind = false;
  EXPECT_EQ(choose_path(query, order).path, Path::copy_engine);
  query = device_query(8);
  query.forced = Path::staged;
  EXPECT_EQ(choose_path(query, order).path, Path::staged) << "forced";
  query = device_query(8);
  query.locality = Locality::other_host;
  query.peer_maps = query.shm_open = false;
  EXPECT_EQ(choose_path(query, order).path, Path::ucx);
}

TEST(PathOrder, a_spike_between_two_steps_leaves_the_rest_alone) {
  Calibration calibration;
  calibration.add(Path::shm, kHost, {1000, 1});
  calibration.add(Path::shm, kHost, {1001, 9});
  calibration.add(Path::shm, kHost, {1002, 1});
  calibration.add(Path::ucx, kHost, {1, 3});
  calibration.add(Path::ucx, kHost, {1 << 20, 3});
  const PathOrder order(calibration);
  EXPECT_EQ(choose_path(host_query(1000), order).path, Path::shm);
  EXPECT_EQ(choose_path(host_query(1002), order).path, Path::shm);
  EXPECT_LE(order.bands(kHost).size(), 4U);
  EXPECT_EQ(order.bands(kHost).back().up_to, std::numeric_limits<std::size_t>::max());
}

TEST(PathOrder, one_path_can_go_first_for_measuring) {
  const PathOrder order = PathOrder::preferring(Path::ucx);
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{65536}, std::size_t{16} << 20}) {
    EXPECT_EQ(choose_path(host_query(bytes), order).path, Path::ucx);
    EXPECT_EQ(choose_path(device_query(bytes), order).path, Path::ucx);
  }
}

TEST(PathVerdicts, the_chosen_path_is_first_and_refusals_are_last_with_a_reason) {
  for (const PathQuery& query : {host_query(8), host_query(65536), device_query(8), device_query(1 << 20)}) {
    const auto verdicts = judge_paths(query, PathOrder::defaults(), Calibration::defaults());
    ASSERT_EQ(verdicts.size(), static_cast<std::size_t>(kPathCount - 1)) << "every path, and no other";
    EXPECT_EQ(verdicts.front().path, choose_path(query).path);
    bool refused = false;
    for (const PathVerdict& verdict : verdicts) {
      EXPECT_FALSE(refused && verdict.refusal == nullptr) << path_name(verdict.path);
      refused = verdict.refusal != nullptr;
      EXPECT_FALSE(refused && verdict.us) << path_name(verdict.path);
    }
    EXPECT_TRUE(refused) << "kernel at least";
  }
}

TEST(PathVerdicts, what_was_measured_within_a_host_says_nothing_about_two) {
  PathQuery query = host_query(8);
  query.locality = Locality::other_host;
  query.shm_open = false;
  const auto verdicts = judge_paths(query, PathOrder::defaults(), Calibration::defaults());
  EXPECT_EQ(verdicts.front().path, Path::ucx);
  EXPECT_FALSE(verdicts.front().us);
}

TEST(PathVerdicts, between_host_and_device_only_small_messages_go_through_shared_memory) {
  PathQuery query = host_query(kShmSmallBytes);
  query.other_kind = MemoryKind::cuda;
  EXPECT_EQ(choose_path(query).path, Path::shm);
  ++query.bytes;
  EXPECT_EQ(choose_path(query).path, Path::ucx);
  std::swap(query.kind, query.other_kind);
  query.peer_maps = true;
  query.courier_bytes = 1 << 20;
  EXPECT_EQ(choose_path(query).path, Path::ucx);
  query.wire_takes_kind = false;
  EXPECT_EQ(choose_path(query).path, Path::staged);
}

}  // namespace
}  // namespace brant
