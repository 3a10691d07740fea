#pragma once

#include <memory>
#include <vector>

#include "models/mpi/composite_request.h"
#include "models/mpi/partitioned_setup.h"
#include "models/mpi/ready_bells.h"

namespace brant::mpi {

/// A message in partitions, each of which leaves when the program says that it is ready: MPI_Psend_init. Each partition
/// is a message of its own, so it takes the ways that messages take, between devices too.
class PartitionedSend final : public CompositeRequest {
 public:
  /// Tells the receiver at once. `destination` may be MPI_PROC_NULL. Throws what TypedBuffer throws.
  PartitionedSend(RankState& rank_in, Communicator& communicator_in, const void* buffer, int partitions,
                  MPI_Count count, MPI_Datatype type, int destination, int tag);

  void start() noexcept override;
  [[nodiscard]] std::string text() const override;

  /// Throws MPI_ERR_REQUEST, MPI_ERR_ARG.
  void ready(int partition);
  /// Those of kernels and streams, made at the first call. Throws Error.
  ReadyBells& bells();
  /// A bell says so, or cannot say any more.
  void rung(int partition, Status status) noexcept;

 private:
  void leave(std::size_t partition) noexcept;
  void tell_receiver(const PartitionedSetup& setup, int destination, int tag);

  std::vector<std::unique_ptr<SendRequest>> sends_;  ///< By partition; none for MPI_PROC_NULL.
  std::vector<bool> ready_;
  std::unique_ptr<ReadyBells> bells_;  ///< Null: the CPU says what is ready.
};

}  // namespace brant::mpi
