#pragma once

#include <cstdint>

#include "brant/base/api.h"
#include "brant/core/stream.h"
#include "brant/device/notify.cuh"
#include "brant/mpi/mpi.h"

namespace brant::mpi {

class ReadyBells;

/// Kernels and streams that say which partitions of a message are ready, where `MPI_Pready` is the CPU's. A partition
/// leaves while the kernel still computes the others; the CPU is in MPI meanwhile, in `MPI_Wait` for example, since MPI
/// moves what it has to move when it is called.
///
///     MPI_Psend_init(field, 8, count, MPI_DOUBLE, right, 0, comm, MPI_INFO_NULL, &send);
///     const PartitionBells bells(send);
///     MPI_Start(&send);
///     compute<<<...>>>(field, bells.device(0), ..., bells.epoch());   // notify::ring(bell, epoch) for each partition
///     MPI_Wait(&send, MPI_STATUS_IGNORE);
///
/// A view of what the request keeps: copied freely, valid until the request is freed; of the thread that calls MPI. The
/// n-th `MPI_Start` of the request awaits epoch n of each bell. What a kernel wrote before it rang is in the message.
/// `MPI_Pready` may be called as well, for other partitions of the same message.
class BRANT_API PartitionBells {
 public:
  /// Of a request of MPI_Psend_init, between its starts; the first of a request makes the bells, which allocates memory
  /// of the device. Throws Error: invalid_argument (no such request, or a message of it is under way), not_supported
  /// (no device, or none with streams), no_memory, limit_reached.
  explicit PartitionBells(MPI_Request send);

  /// For kernels, to ring it: an argument by value. Of a partition that is none a bell without a word.
  [[nodiscard]] notify::DeviceBell device(int partition) const noexcept;
  /// What is to be rung for the message that was started last: 1 for the first. 0: none was.
  [[nodiscard]] std::uint64_t epoch() const noexcept;
  /// The partition is ready for the message of `epoch` when the stream comes there: for kernels that nobody can change.
  /// invalid_argument: no such partition, no stream; not_supported: a device without stream memory operations.
  Status enqueue_ready(StreamHandle stream, int partition, std::uint64_t epoch) const noexcept;

 private:
  ReadyBells* bells_;
};

}  // namespace brant::mpi
