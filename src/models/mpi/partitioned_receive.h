#pragma once

#include <memory>
#include <vector>

#include "models/mpi/composite_request.h"
#include "models/mpi/partitioned_setup.h"

namespace brant::mpi {

/// The receiving end of a message in partitions: MPI_Precv_init. Its partitions need not be those of the sender.
class PartitionedReceive final : public CompositeRequest {
 public:
  /// Takes the next sender that is made with these ranks and this tag. `source` may be MPI_PROC_NULL. Throws what
  /// TypedBuffer throws.
  PartitionedReceive(RankState& rank_in, Communicator& communicator_in, void* buffer, int partitions, MPI_Count count,
                     MPI_Datatype type, int source, int tag);

  void start() noexcept override;
  void part_ended(Request& part) noexcept override;
  int finish() noexcept override;
  /// The next sender is its own, also when it is freed before that has come: those made later have others.
  [[nodiscard]] bool listens() const noexcept override { return hearing_ != nullptr && !hearing_->ended(); }
  [[nodiscard]] std::string text() const override;

  /// The partition is in its place. Nothing is expected of a message that is not under way. Throws MPI_ERR_ARG, and
  /// what the device reports.
  bool arrived(int partition);

 private:
  [[nodiscard]] std::vector<std::unique_ptr<ReceiveRequest>> make_parts();
  void start_parts() noexcept;
  int conclude() noexcept override;
  void unpack(int partition);
  [[nodiscard]] bool all_came(std::size_t first_byte, std::size_t last_byte) const noexcept;

  std::byte* const buffer_;
  const int partitions_;
  const MPI_Count count_;  ///< Of each partition.
  const int source_;
  TypedBuffer whole_;
  DatatypeRef type_;
  PartitionedSetup setup_;
  std::unique_ptr<ReceiveRequest> hearing_;                ///< Of `setup_`; null for MPI_PROC_NULL.
  std::vector<std::unique_ptr<ReceiveRequest>> receives_;  ///< By partition of the sender.
  std::unique_ptr<std::byte[]> packed_;  ///< Where data with gaps comes, if the sender has other partitions.
  std::vector<bool> unpacked_;           ///< By partition, of what came packed.
};

}  // namespace brant::mpi
