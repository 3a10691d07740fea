#pragma once

#include <string>
#include <vector>

#include "bench/mpi/mpi_library.h"
#include "bench/runner/meeting.h"

namespace brant::bench::mpi {

/// The processes of a job of MPI in pairs, rank i with rank i + n/2, from its init to its finalize.
class Pairs final : public Meeting {
 public:
  /// `name`: of the command. Throws Error: no such library, a number of processes that does not make pairs.
  Pairs(const std::string& library, const char* name);
  ~Pairs() override;

  [[nodiscard]] const Library& mpi() const noexcept { return mpi_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  /// This process begins round trips and sends the windows; its partner answers.
  [[nodiscard]] bool leads() const noexcept { return rank_ < size_ / 2; }
  [[nodiscard]] int partner() const noexcept { return leads() ? rank_ + size_ / 2 : rank_ - size_ / 2; }
  [[nodiscard]] int pair() const noexcept { return leads() ? rank_ : partner(); }

  [[nodiscard]] int ranks() const override { return size_; }
  [[nodiscard]] bool reports() const override { return rank_ == 0; }
  void barrier() override { require(mpi_.barrier(mpi_.world), "MPI_Barrier"); }
  std::vector<double> gather(const std::vector<double>& samples) override;

 private:
  const Library mpi_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace brant::bench::mpi
