#pragma once

#include <gtest/gtest.h>

#include "brant/mpi/mpi.h"

/// Included before mpi_job.h: what GoogleTest is told of first starts before MPI_Init and ends after MPI_Finalize.
namespace brant::mpi::test {

/// A function of the test program that is called there.
struct AroundTheJob : testing::Environment {
  using Step = void (*)();
  void SetUp() override { before(); }
  void TearDown() override { after(); }

  static void before();
  static void after();
};

// NOLINTNEXTLINE(bugprone-throwing-static-initialization): GoogleTest wants it before main
inline const testing::Environment* const kAroundTheJob = testing::AddGlobalTestEnvironment(new AroundTheJob);

}  // namespace brant::mpi::test
