#include "models/mpi/checks/checks.h"

#include <utility>

#include "base/env.h"
#include "models/mpi/process.h"

namespace brant::mpi {

void Checks::enter(const char* function) noexcept { calls_[calling_slot()] = function; }

const char* Checks::current_call() const noexcept { return calls_[calling_slot()]; }

void Checks::wait_in_collective(std::string said) noexcept { collectives_[calling_slot()] = std::move(said); }

std::unique_ptr<Checks> checks_of_environment(std::size_t ranks_here) {
  return env_bool("BRANT_MPI_CHECK", false) ? std::make_unique<Checks>(ranks_here) : nullptr;
}

}  // namespace brant::mpi
