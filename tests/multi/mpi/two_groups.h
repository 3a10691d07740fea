#pragma once

#include "mpi_job.h"

namespace brant::mpi::test {

inline int rank_in(MPI_Comm comm) {
  int value = -1;
  EXPECT_EQ(MPI_Comm_rank(comm, &value), MPI_SUCCESS);
  return value;
}

inline int size_of(MPI_Comm comm) {
  int value = -1;
  EXPECT_EQ(MPI_Comm_size(comm, &value), MPI_SUCCESS);
  return value;
}

inline int remote_size_of(MPI_Comm comm) {
  int value = -1;
  EXPECT_EQ(MPI_Comm_remote_size(comm, &value), MPI_SUCCESS);
  return value;
}

/// Rank 0 of the world in one group and all others in the other, these in reverse order: what depends on the order of
/// groups, or on ranks being those of the world, shows. Needs two ranks.
class TwoGroups {
 public:
  TwoGroups() {
    MPI_Comm_split(MPI_COMM_WORLD, alone ? 0 : 1, -rank(), &own);
    MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, alone ? size() - 1 : 0, 5, &both);
  }
  ~TwoGroups() {
    MPI_Comm_free(&both);
    MPI_Comm_free(&own);
  }
  TwoGroups(const TwoGroups&) = delete;
  TwoGroups& operator=(const TwoGroups&) = delete;

  const bool alone = rank() == 0;
  MPI_Comm own = MPI_COMM_NULL;   ///< Of this rank's group.
  MPI_Comm both = MPI_COMM_NULL;  ///< Between the two.
  /// Which rank of the world has a rank of the other group.
  [[nodiscard]] int world_rank(int remote) const { return alone ? size() - 1 - remote : 0; }
};

}  // namespace brant::mpi::test
