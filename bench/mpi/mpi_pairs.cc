#include "bench/mpi/mpi_pairs.h"

#include <exception>

namespace brant::bench::mpi {

Pairs::Pairs(const std::string& library, const char* name) : mpi_(load(library)) {
  require(mpi_.init(nullptr, nullptr), "MPI_Init");
  require(mpi_.comm_rank(mpi_.world, &rank_), "MPI_Comm_rank");
  require(mpi_.comm_size(mpi_.world, &size_), "MPI_Comm_size");
  require_pairs(name, size_);
}

/// Who has failed does not wait for the others: what started the job ends them.
Pairs::~Pairs() {
  if (std::uncaught_exceptions() == 0) static_cast<void>(mpi_.finalize());
}

std::vector<double> Pairs::gather(const std::vector<double>& samples) {
  const auto count = static_cast<int>(samples.size());  // the same at all
  if (!reports()) {
    if (leads()) require(mpi_.send(samples.data(), count, mpi_.double_type, 0, 0, mpi_.world), "MPI_Send");
    return {};
  }
  std::vector<double> all = samples;
  all.resize(samples.size() * static_cast<std::size_t>(size_ / 2));
  for (int rank = 1; rank < size_ / 2; ++rank) {
    StatusRoom status;
    double* const place = all.data() + samples.size() * static_cast<std::size_t>(rank);
    require(mpi_.recv(place, count, mpi_.double_type, rank, 0, mpi_.world, &status), "MPI_Recv");
  }
  return all;
}

}  // namespace brant::bench::mpi
