#pragma once

#include <memory>

#include "models/mpi/request.h"

namespace brant::mpi {

/// Throws MPI_ERR_RANK, MPI_ERR_TAG. MPI_PROC_NULL is a rank here.
void require_destination(const Communicator& communicator, int destination, int tag);
/// The same with wildcards.
void require_source(const Communicator& communicator, int source, int tag);

/// Copies the data and lets the message go by itself. Throws MPI_ERR_BUFFER where what is attached has no room.
void start_buffered(Communicator& communicator, const TypedBuffer& source, int destination, int tag);

/// A buffered send that the program starts itself.
class BufferedRequest final : public Request {
 public:
  BufferedRequest(RankState& rank_in, Communicator& communicator_in, const TypedBuffer& source_in, int destination_in,
                  int tag_in) noexcept
      : Request(rank_in, &communicator_in), source_(source_in), destination_(destination_in), tag_(tag_in) {}
  void start() noexcept override;

 private:
  const TypedBuffer source_;
  const int destination_;
  const int tag_;
};

/// Waits for a request of a blocking call. Throws what became of it, if that is an error.
void complete(Request& request);
/// Gives a request to the program: inactive if it is persistent, else started.
void hand_out(std::unique_ptr<Request> request, bool persistent, MPI_Request* place);

}  // namespace brant::mpi
