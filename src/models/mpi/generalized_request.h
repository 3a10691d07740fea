#pragma once

#include "models/mpi/request.h"

namespace brant::mpi {

/// An operation of the program's own, which says itself when it has ended: MPI_Grequest_start. Any of the functions may
/// be null.
class GeneralizedRequest final : public Request {
 public:
  GeneralizedRequest(RankState& rank_in, MPI_Grequest_query_function* query_in, MPI_Grequest_free_function* free_in,
                     MPI_Grequest_cancel_function* cancel_in, void* extra) noexcept
      : Request(rank_in, nullptr), query_(query_in), free_(free_in), cancel_(cancel_in), extra_(extra) {}

  void start() noexcept override { begin(); }
  int cancel() noexcept override;
  int finish() noexcept override;
  int let_go() noexcept override;
  [[nodiscard]] std::string text() const override { return "an operation of the program (MPI_Grequest_start)"; }

 private:
  MPI_Grequest_query_function* const query_;
  MPI_Grequest_free_function* const free_;
  MPI_Grequest_cancel_function* const cancel_;
  void* const extra_;
};

}  // namespace brant::mpi
