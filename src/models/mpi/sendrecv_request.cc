#include "models/mpi/sendrecv_request.h"

#include <utility>

namespace brant::mpi {

void SendrecvRequest::set_send(const TypedBuffer& source, int destination, int tag, std::unique_ptr<std::byte[]> copy) {
  copy_ = std::move(copy);
  send_.emplace(rank, *communicator, source, destination, tag, SendMode::standard);
  send_->whole = this;
}

void SendrecvRequest::set_receive(const TypedBuffer& landing, int source, int tag) {
  receive_.emplace(rank, *communicator, landing, source, tag);
  receive_->whole = this;
}

void SendrecvRequest::start() noexcept {
  begin_parts((send_ ? 1u : 0u) + (receive_ ? 1u : 0u));
  if (receive_) receive_->start();
  if (send_) send_->start();
  drop_one();
}

int SendrecvRequest::conclude() noexcept {
  outcome.source = MPI_PROC_NULL;
  if (receive_) outcome = receive_->outcome;
  const bool only_send_failed = outcome.error == MPI_SUCCESS && send_;
  return only_send_failed ? send_->outcome.error : outcome.error;
}

}  // namespace brant::mpi
