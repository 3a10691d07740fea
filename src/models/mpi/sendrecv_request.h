#pragma once

#include <memory>
#include <optional>

#include "models/mpi/composite_request.h"

namespace brant::mpi {

/// A send and a receive that are waited for as one: MPI_Isendrecv. Either may be missing, to or from MPI_PROC_NULL. Its
/// outcome is that of the receive.
class SendrecvRequest final : public CompositeRequest {
 public:
  SendrecvRequest(RankState& rank_in, Communicator& communicator_in) noexcept
      : CompositeRequest(rank_in, &communicator_in) {}

  /// `copy`: memory that `source` lies in, and that goes with the request.
  void set_send(const TypedBuffer& source, int destination, int tag, std::unique_ptr<std::byte[]> copy = nullptr);
  void set_receive(const TypedBuffer& landing, int source, int tag);

  void start() noexcept override;
  [[nodiscard]] std::string fault() const override { return receive_ ? receive_->fault() : std::string(); }
  [[nodiscard]] bool uses(const std::byte* base, std::size_t bytes) const noexcept override {
    return (send_ && send_->uses(base, bytes)) || (receive_ && receive_->uses(base, bytes));
  }

 private:
  int conclude() noexcept override;

  std::unique_ptr<std::byte[]> copy_;
  std::optional<SendRequest> send_;
  std::optional<ReceiveRequest> receive_;
};

}  // namespace brant::mpi
