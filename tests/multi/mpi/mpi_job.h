#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

#include "brant/mpi/mpi.h"
#include "brant/mpi/runtime.h"
#include "support/own_host.h"

/// For tests that run as every rank of a job: MPI is initialised once, before the first of them.
namespace brant::mpi::test {

/// Each rank on a host of its own, as far as the machine allows it: everything goes over the network.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): before main, or not at all
[[maybe_unused]] inline const bool kOwnHost =
    std::getenv("BRANT_TEST_OWN_HOSTS") != nullptr && brant::test::become_own_host();

/// Calls take turns, as those of threads have to, whether the test has threads or not.
inline const bool kThreads = std::getenv("BRANT_TEST_THREADS") != nullptr;

class Job : public testing::Environment {
 public:
  void SetUp() override {
    int level = -1;
    const int wish = kThreads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    ASSERT_EQ(MPI_Init_thread(nullptr, nullptr, wish, &level), MPI_SUCCESS);
    ASSERT_EQ(level, wish);
  }
  void TearDown() override { ASSERT_EQ(MPI_Finalize(), MPI_SUCCESS); }
};

// NOLINTNEXTLINE(bugprone-throwing-static-initialization): GoogleTest wants it before main
inline const testing::Environment* const kJob = testing::AddGlobalTestEnvironment(new Job);

inline int rank() {
  int value = -1;
  EXPECT_EQ(MPI_Comm_rank(MPI_COMM_WORLD, &value), MPI_SUCCESS);
  return value;
}

inline int size() {
  int value = -1;
  EXPECT_EQ(MPI_Comm_size(MPI_COMM_WORLD, &value), MPI_SUCCESS);
  return value;
}

/// Errors on a communicator are returned as long as it lives.
class ErrorsReturned {
 public:
  explicit ErrorsReturned(MPI_Comm comm) : comm_(comm) {
    MPI_Comm_get_errhandler(comm_, &before_);
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  ~ErrorsReturned() {
    MPI_Comm_set_errhandler(comm_, before_);
    MPI_Errhandler_free(&before_);
  }
  ErrorsReturned(const ErrorsReturned&) = delete;
  ErrorsReturned& operator=(const ErrorsReturned&) = delete;

 private:
  MPI_Comm comm_;
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

inline std::vector<std::uint8_t> pattern(std::size_t bytes, int seed) {
  std::vector<std::uint8_t> data(bytes);
  auto state = static_cast<std::uint32_t>(seed) * 2654435761u + 12345u;
  for (std::uint8_t& byte : data) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  return data;
}

}  // namespace brant::mpi::test
