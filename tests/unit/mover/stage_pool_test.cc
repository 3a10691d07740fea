// Stage buffers of one process, many at a time.
#include "ops/mover/stage_pool.h"

#include <cstring>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "support/in_process_job.h"

namespace brant {
namespace {

using test::InProcessJob;

/// A process has 256 allocations that others can map.
constexpr std::size_t kMany = 1000;
constexpr std::size_t kBytes = std::size_t{48} * 1024;

class StagePools : public testing::Test {
 protected:
  StagePools() : job_(test::ranks(1, GpuChoice::emulated)) {}

  Engine& engine() { return job_.rank(0).worker().engine(); }

  InProcessJob job_;
};

TEST_F(StagePools, leave_others_what_processes_can_map) {
  StagePool pool(engine());
  std::vector<StagePool::Lease> leases;
  leases.reserve(kMany);
  for (std::size_t i = 0; i < kMany; ++i) leases.push_back(pool.take(kBytes).or_throw("a stage buffer"));
  Memory other = job_.rank(0).allocate(MemoryKind::host, std::size_t{64} * 1024);
  EXPECT_TRUE(engine().device().export_allocation(other.data()).ok());
  for (const StagePool::Lease& lease : leases) pool.give_back(lease);
}

TEST_F(StagePools, lend_each_byte_once_and_all_of_them_again) {
  StagePool pool(engine());
  std::set<void*> lent;
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<StagePool::Lease> leases;
    leases.reserve(kMany);
    for (std::size_t i = 0; i < kMany; ++i) {
      leases.push_back(pool.take(kBytes).or_throw("a stage buffer"));
      EXPECT_GE(leases.back().bytes, kBytes);
      std::memset(leases.back().data, static_cast<int>(i % 251), leases.back().bytes);
    }
    for (std::size_t i = 0; i < kMany; ++i) {
      const auto* const bytes = static_cast<const unsigned char*>(leases[i].data);
      EXPECT_EQ(bytes[0], i % 251);
      EXPECT_EQ(bytes[leases[i].bytes - 1], i % 251);
      lent.insert(leases[i].data);
      pool.give_back(leases[i]);
    }
    EXPECT_EQ(lent.size(), kMany);
  }
}

TEST_F(StagePools, keep_no_more_than_a_bound) {
  constexpr std::size_t kBound = std::size_t{1} << 20;
  StagePool pool(engine(), kBound);
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<StagePool::Lease> leases;
    leases.reserve(kMany);
    for (std::size_t i = 0; i < kMany; ++i) {
      leases.push_back(pool.take(i % 10 == 0 ? kBytes : kBytes / 8).or_throw("a stage buffer"));
      std::memset(leases.back().data, static_cast<int>(i % 251), leases.back().bytes);
    }
    // Slabs of which something is lent stay.
    const StagePool::Lease last = leases.back();
    leases.pop_back();
    for (const StagePool::Lease& lease : leases) pool.give_back(lease);
    EXPECT_GT(pool.kept_bytes(), kBound);
    job_.rank(0).tidy();
    EXPECT_LE(pool.kept_bytes(), kBound + (std::size_t{4} << 20));
    EXPECT_EQ(static_cast<const unsigned char*>(last.data)[last.bytes - 1], (kMany - 1) % 251);
    pool.give_back(last);
    job_.rank(0).tidy();
    EXPECT_LE(pool.kept_bytes(), kBound);
  }
}

TEST_F(StagePools, take_large_buffers_one_by_one) {
  StagePool pool(engine());
  constexpr std::size_t kLarge = std::size_t{5} << 20;
  const StagePool::Lease lease = pool.take(kLarge).or_throw("a stage buffer");
  EXPECT_EQ(lease.bytes, std::size_t{8} << 20);
  pool.give_back(lease);
  EXPECT_EQ(pool.take(kLarge).or_throw("a stage buffer").data, lease.data);
  pool.give_back(lease);
}

}  // namespace
}  // namespace brant
