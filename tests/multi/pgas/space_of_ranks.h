#pragma once

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/coll/collectives.h"
#include "brant/coll/team.h"
#include "brant/pgas.h"
#include "support/grounds.h"
#include "support/job_runtime.h"

namespace brant::test {

/// What rank `from` gives rank `to`.
inline std::vector<std::byte> image(std::size_t bytes, int from, int to) {
  return pattern(bytes, static_cast<unsigned>(from * 8 + to));
}

inline OpResult outcome(const Operation& operation) {
  const OpResult result = job().wait_for(std::chrono::seconds(60), operation);
  EXPECT_NE(result.status, Status::timed_out);
  return result;
}

/// All kinds of memory that the processes of this job have.
inline std::vector<MemoryKind> kinds() {
  std::vector<MemoryKind> all = {MemoryKind::host, MemoryKind::pinned};
  if (job().device_kind() != MemoryKind::host) all.push_back(job().device_kind());
  return all;
}

/// Those of them that others reach. UCX knows nothing of emulated devices: between hosts their memory is a process's
/// own end of a copy, and no other one's.
inline std::vector<MemoryKind> kinds_of_others() {
  std::vector<MemoryKind> all = kinds();
  if (std::getenv("BRANT_TEST_OWN_HOSTS") != nullptr) std::erase(all, MemoryKind::emulated);
  return all;
}

/// The global space of a job, as each of its ranks sees it.
class SpaceOfRanks : public testing::Test {
 protected:
  void barrier() { ASSERT_TRUE(team_.run(brant::barrier()).ok()); }
  template <typename T>
  std::vector<T> gather(const T& mine) {
    std::vector<T> all(static_cast<std::size_t>(job().size()));
    EXPECT_TRUE(
        team_.run(brant::allgather(ConstBuffer(&mine, sizeof(T), MemoryKind::host), Buffer(std::span(all)))).ok());
    return all;
  }
  [[nodiscard]] static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  const int self_ = job().rank().value, size_ = job().size();
  const int right_ = (self_ + 1) % size_, left_ = (self_ + size_ - 1) % size_;
  Team team_ = Team::world(job());
  GlobalSpace space_{job()};
};

}  // namespace brant::test
