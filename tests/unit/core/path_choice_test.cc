#include "core/paths/path_choice.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace brant {
namespace {

struct Case {
  const char* what;
  PathQuery query;
  Path path;
  Status status;
};

TEST(PathChoice, table) {
  const auto query = [](MemoryKind kind, bool wire, bool shm, Path forced, std::size_t bytes = 4096, bool maps = false,
                        std::size_t courier = 0) {
    return PathQuery{kind, bytes, Locality::same_host, wire, shm, maps, courier, forced};
  };
  const std::vector<Case> cases = {
      {"host over the network", query(MemoryKind::host, true, false, Path::automatic), Path::ucx, Status::ok},
      {"host through shared memory", query(MemoryKind::host, true, true, Path::automatic), Path::shm, Status::ok},
      {"small host", query(MemoryKind::host, true, true, Path::automatic, kShmSmallBytes), Path::shm, Status::ok},
      {"medium host", query(MemoryKind::host, true, true, Path::automatic, kShmSmallBytes + 1), Path::ucx, Status::ok},
      {"nearly large host", query(MemoryKind::host, true, true, Path::automatic, kShmLargeBytes - 1), Path::ucx,
       Status::ok},
      {"large host", query(MemoryKind::host, true, true, Path::automatic, kShmLargeBytes), Path::shm, Status::ok},
      {"medium host, a network without it", query(MemoryKind::host, false, true, Path::automatic, 65536), Path::shm,
       Status::ok},
      {"medium host, forced", query(MemoryKind::host, true, true, Path::shm, 65536), Path::shm, Status::ok},
      {"cuda over the network", query(MemoryKind::cuda, true, true, Path::automatic), Path::ucx, Status::ok},
      {"cuda that the network does not take", query(MemoryKind::cuda, false, true, Path::automatic), Path::staged,
       Status::ok},
      {"cuda that the peer maps", query(MemoryKind::cuda, true, true, Path::automatic, 4096, true), Path::copy_engine,
       Status::ok},
      {"host beside a device that the peer maps", query(MemoryKind::host, true, true, Path::automatic, 4096, true),
       Path::shm, Status::ok},
      {"mapped memory on demand", query(MemoryKind::cuda, true, true, Path::copy_engine, 4096, true), Path::copy_engine,
       Status::ok},
      {"copy engine without a mapping", query(MemoryKind::cuda, true, true, Path::copy_engine), Path::copy_engine,
       Status::not_supported},
      {"copy engine for host memory", query(MemoryKind::host, true, true, Path::copy_engine, 4096, true),
       Path::copy_engine, Status::not_supported},
      {"small and mapped, with a courier", query(MemoryKind::cuda, true, true, Path::automatic, 4096, true, 4096),
       Path::courier, Status::ok},
      {"larger than the courier takes", query(MemoryKind::cuda, true, true, Path::automatic, 4097, true, 4096),
       Path::copy_engine, Status::ok},
      {"copy engine on demand beside a courier", query(MemoryKind::cuda, true, true, Path::copy_engine, 8, true, 4096),
       Path::copy_engine, Status::ok},
      {"courier on demand", query(MemoryKind::cuda, true, true, Path::courier, 1 << 20, true, 4096), Path::courier,
       Status::ok},
      {"courier on demand without one", query(MemoryKind::cuda, true, true, Path::courier, 8, true), Path::courier,
       Status::not_supported},
      {"courier for host memory", query(MemoryKind::host, true, true, Path::courier, 8, true, 4096), Path::courier,
       Status::not_supported},
      {"kernel without a stream", query(MemoryKind::cuda, true, true, Path::kernel, 8, true, 4096), Path::kernel,
       Status::not_supported},
      {"ucx on demand although mapped", query(MemoryKind::cuda, true, true, Path::ucx, 4096, true), Path::ucx,
       Status::ok},
      {"emulated", query(MemoryKind::emulated, false, false, Path::automatic), Path::staged, Status::ok},
      {"staged on demand", query(MemoryKind::cuda, true, false, Path::staged), Path::staged, Status::ok},
      {"ucx on demand", query(MemoryKind::host, true, true, Path::ucx), Path::ucx, Status::ok},
      {"ucx with memory it does not take", query(MemoryKind::emulated, false, false, Path::ucx), Path::ucx,
       Status::not_supported},
      {"shm with device memory", query(MemoryKind::cuda, true, true, Path::shm), Path::shm, Status::not_supported},
      {"shm between hosts", query(MemoryKind::host, true, false, Path::shm), Path::shm, Status::not_supported},
  };
  for (const Case& one : cases) {
    const PathChoice choice = choose_path(one.query);
    EXPECT_EQ(choice.path, one.path) << one.what;
    EXPECT_EQ(choice.status, one.status) << one.what;
    EXPECT_NE(std::string(choice.reason), "") << one.what;
  }
}

TEST(PathChoice, between_a_device_and_host_memory_that_it_reaches_nobody_else_is_needed) {
  struct Mixed {
    const char* what;
    MemoryKind from, to;
    bool mapped_landing;
    Path path;
  };
  constexpr auto kHost = MemoryKind::host, kPinned = MemoryKind::pinned, kCuda = MemoryKind::cuda;
  const std::vector<Mixed> cases = {{"to a mapped landing", kCuda, kHost, true, Path::copy_engine},
                                    {"to another landing", kCuda, kHost, false, Path::ucx},
                                    {"from pinned memory", kPinned, kCuda, false, Path::copy_engine},
                                    {"from memory that is not", kHost, kCuda, false, Path::ucx}};
  for (const Mixed& one : cases) {
    PathQuery query{one.from, 100'000, Locality::same_host, true, true, true, 1 << 20};
    query.other_kind = one.to;
    query.mapped_landing = one.mapped_landing;
    EXPECT_EQ(choose_path(query).path, one.path) << one.what;
    query.forced = Path::courier;
    EXPECT_EQ(choose_path(query).status, Status::not_supported) << one.what;
    query.forced = Path::automatic;
    query.peer_maps = false;
    EXPECT_EQ(choose_path(query).path, Path::ucx) << one.what;
  }
}

/// What a put or get goes by.
struct OneSided {
  const char* what;
  MemoryKind from;
  MemoryKind to;
  bool wire;
  bool mapped;  ///< The memory of the other end, be it the host's or a device's.
  bool pinned_here;
  Path forced;
  Path path;
  Status status;
};

TEST(PathChoice, of_puts_and_gets) {
  constexpr MemoryKind kHost = MemoryKind::host, kPinned = MemoryKind::pinned, kCuda = MemoryKind::cuda;
  constexpr Path kAuto = Path::automatic;
  constexpr Status kOk = Status::ok, kNot = Status::not_supported;
  const std::vector<OneSided> cases = {
      {"mapped host memory", kHost, kHost, true, true, false, kAuto, Path::shm, kOk},
      {"host memory that is not mapped", kHost, kHost, true, false, false, kAuto, Path::ucx, kOk},
      {"mapped, on demand over the network", kHost, kHost, true, true, false, Path::ucx, Path::ucx, kOk},
      {"on demand, not mapped", kHost, kHost, true, false, false, Path::shm, Path::shm, kNot},
      {"between devices that map", kCuda, kCuda, true, true, false, kAuto, Path::courier, kOk},
      {"between devices that map, on demand", kCuda, kCuda, true, true, false, Path::copy_engine, Path::copy_engine,
       kOk},
      {"between devices that do not", kCuda, kCuda, true, false, false, kAuto, Path::ucx, kOk},
      {"between devices by nothing", kCuda, kCuda, false, false, false, kAuto, Path::staged, kOk},
      {"pinned to a device", kPinned, kCuda, true, true, true, kAuto, Path::courier, kOk},
      {"a device to pinned", kCuda, kPinned, true, true, true, kAuto, Path::courier, kOk},
      {"the same by a copy engine", kCuda, kPinned, true, true, true, Path::copy_engine, Path::copy_engine, kOk},
      {"pageable to a device that is mapped", kHost, kCuda, true, true, false, kAuto, Path::staged, kOk},
      {"the same on demand over the network", kHost, kCuda, true, true, false, Path::ucx, Path::ucx, kOk},
      {"pageable to a device that is not", kHost, kCuda, true, false, false, kAuto, Path::ucx, kOk},
      {"pageable to a device, without the network", kHost, kCuda, false, true, false, kAuto, Path::staged, kOk},
      {"pageable to a device, on demand", kHost, kCuda, true, true, false, Path::copy_engine, Path::copy_engine, kNot},
      {"a device to host memory of the peer", kCuda, kPinned, false, true, false, kAuto, Path::staged, kOk},
      {"the courier for host memory", kPinned, kCuda, true, true, true, Path::courier, Path::courier, kOk},
      {"the courier for pageable memory", kHost, kCuda, true, true, false, Path::courier, Path::courier, kNot},
      {"shm for a device", kHost, kCuda, true, true, false, Path::shm, Path::shm, kNot},
      {"a kernel", kCuda, kCuda, true, true, false, Path::kernel, Path::kernel, kNot},
  };
  for (const OneSided& one : cases) {
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{65536}}) {
      PathQuery query;
      query.one_sided = true;
      query.kind = one.from;
      query.other_kind = one.to;
      query.bytes = bytes;
      query.wire_takes_kind = one.wire;
      query.shm_open = query.peer_maps = one.mapped;
      query.courier_bytes = one.mapped ? 1 << 20 : 0;
      query.pinned_here = one.pinned_here;
      query.forced = one.forced;
      const PathChoice choice = choose_path(query);
      EXPECT_EQ(choice.path, one.path) << one.what;
      EXPECT_EQ(choice.status, one.status) << one.what;
      EXPECT_NE(std::string(choice.reason), "") << one.what;
    }
  }
}

TEST(PathChoice, what_was_measured_with_messages_counts_for_puts_between_devices_only) {
  Calibration measured;
  for (const EndPair ends : {EndPair{true, true}, EndPair{false, false}}) {
    measured.add(Path::ucx, ends, {8, 1});
    measured.add(Path::copy_engine, ends, {8, 9});
    measured.add(Path::shm, ends, {8, 9});
  }
  const PathOrder order(measured);
  PathQuery query;
  query.one_sided = query.shm_open = query.peer_maps = true;
  query.bytes = 8;
  query.kind = query.other_kind = MemoryKind::cuda;
  EXPECT_EQ(choose_path(query, order).path, Path::ucx);
  query.kind = query.other_kind = MemoryKind::host;
  EXPECT_EQ(choose_path(query, order).path, Path::shm) << "a mapped put needs nobody";
}

TEST(PathChoice, host_memory_that_the_receiver_maps_is_copied_by_it_whatever_is_faster_for_other_memory) {
  Calibration measured;
  measured.add(Path::ucx, EndPair{false, false}, {kOfferedBytes, 1});
  measured.add(Path::shm, EndPair{false, false}, {kOfferedBytes, 9});
  measured.add(Path::shm, kFromMapped, {8192, 5});
  const PathOrder order(measured);
  PathQuery query;
  query.shm_open = query.mapped_source = true;
  query.bytes = kOfferedBytes;
  EXPECT_EQ(choose_path(query, order).path, Path::shm);
  EXPECT_EQ(judge_paths(query, order, measured).front().path, Path::shm);
  EXPECT_EQ(judge_paths(query, order, measured).front().us, 5);
  EXPECT_EQ(predicted_us(Path::ucx, query, measured), 1) << "the network does not care";
  query.bytes = kOfferedBytes - 1;
  EXPECT_EQ(choose_path(query, order).path, Path::ucx);
  query.bytes = kOfferedBytes;
  query.mapped_source = false;
  EXPECT_EQ(choose_path(query, order).path, Path::ucx);
}

TEST(PathChoice, nothing_is_staged_between_host_memories) {
  PathQuery query;
  query.shm_open = true;
  query.forced = Path::staged;
  query.bytes = 8;
  EXPECT_EQ(choose_path(query).path, Path::shm);
  query.bytes = 65536;
  EXPECT_EQ(choose_path(query).path, Path::ucx);
  query.other_kind = MemoryKind::cuda;
  EXPECT_EQ(choose_path(query).path, Path::staged) << "to a device there is";
  query.other_kind = MemoryKind::host;
  query.one_sided = true;
  EXPECT_EQ(choose_path(query).path, Path::staged) << "puts do go by way of a buffer";
}

TEST(Path, names_read_back) {
  for (int index = 0; index < kPathCount; ++index) {
    Path read = Path::automatic;
    ASSERT_TRUE(path_from_name(path_name(static_cast<Path>(index)), read));
    EXPECT_EQ(static_cast<int>(read), index);
  }
  Path untouched = Path::ucx;
  EXPECT_FALSE(path_from_name("rdma", untouched));
  EXPECT_EQ(untouched, Path::ucx);
}

}  // namespace
}  // namespace brant
