#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "models/mpi/composite_request.h"
#include "models/mpi/launch.h"
#include "models/mpi/types/op.h"

namespace brant::mpi {

/// A collective that is made of messages: neighbourhoods, and what two groups do together. All that this rank sends and
/// receives in it is known when it is built and begins at once, so it waits for nobody but those whom it exchanges
/// with. The messages have the communicator's own context, where no receive of the program finds them; those of one
/// collective after another keep their order by pairs of ranks, since all members begin collectives in one order.
/// Buffers may be of devices. It is carried out once, or often.
class Exchange final : public CompositeRequest {
 public:
  Exchange(RankState& rank_in, Communicator& communicator_in) noexcept : CompositeRequest(rank_in, &communicator_in) {}
  ~Exchange() override;

  /// `edge`: which of several messages between two ranks it is, where their order does not say so. To or from
  /// MPI_PROC_NULL: nothing.
  void send(const TypedBuffer& source, int destination, int edge = 0);
  void receive(const TypedBuffer& landing, int source, int edge = 0);
  /// Receives as many elements of each peer, and combines them in the order of ranks. What the peers give may begin
  /// `before` elements earlier and end `behind` later. Throws MPI_ERR_OP, MPI_ERR_UNSUPPORTED_OPERATION.
  void receive_combined(const TypedBuffer& landing, MPI_Op op, MPI_Count before = 0, MPI_Count behind = 0);

  void start() noexcept override;
  int finish() noexcept override;
  [[nodiscard]] std::string text() const override;
  /// What went wrong with whom, if it ended with an error.
  [[nodiscard]] std::string fault() const override;

 private:
  /// What is received to be combined, without gaps.
  struct Combining {
    TypedBuffer landing;
    Op* op = nullptr;
    std::size_t before_bytes = 0;
    std::vector<std::unique_ptr<std::byte[]>> packed;  ///< By peer.
  };
  void combine();
  int conclude() noexcept override;

  std::vector<std::unique_ptr<Request>> receives_;  ///< They start first, so that messages to oneself find them.
  std::vector<std::unique_ptr<Request>> sends_;
  Combining combining_;
};

/// Carries it out in the form in which it was called.
void carry_out(const Launch& how, std::unique_ptr<Exchange> exchange);

}  // namespace brant::mpi
