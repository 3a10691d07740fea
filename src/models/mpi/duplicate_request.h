#pragma once

#include <cstdint>
#include <string>

#include "models/mpi/request.h"

namespace brant::mpi {

/// MPI_Comm_idup: a copy of a communicator gets its context, which the first member of the team hands out.
class DuplicateRequest final : public Request {
 public:
  /// The parent's team is there.
  DuplicateRequest(RankState& rank_in, Communicator& parent, Communicator& copy) noexcept
      : Request(rank_in, &parent), copy_(copy) {
    ++copy_.users;
  }
  ~DuplicateRequest() override { drop_communicator(copy_); }
  void start() noexcept override;
  [[nodiscard]] std::string text() const override { return "a copy of a communicator"; }

 private:
  void take(Status status) noexcept;

  Communicator& copy_;
  std::uint32_t context_ = 0;
  brant::Op op_;
};

}  // namespace brant::mpi
