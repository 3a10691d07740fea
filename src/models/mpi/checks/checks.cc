#include "models/mpi/checks/checks.h"

#include <utility>

#include "base/env.h"
#include "models/mpi/process.h"

namespace brant::mpi {

namespace {

/// Of a thread that calls MPI beside others. Ranks that share a process are no threads of the system, and have one that
/// calls each.
thread_local const char* t_call = nullptr;

}  // namespace

void Checks::enter(const char* function) noexcept {
  calls_[calling_slot()] = function;
  t_call = function;
}

const char* Checks::current_call() const noexcept {
  const bool shared = process() != nullptr && process()->threads() != nullptr;
  return shared || t_call == nullptr ? calls_[calling_slot()] : t_call;
}

void Checks::wait_in_collective(std::string said) noexcept { collectives_[calling_slot()] = std::move(said); }

std::unique_ptr<Checks> checks_of_environment(std::size_t ranks_here) {
  return env_bool("BRANT_MPI_CHECK", false) ? std::make_unique<Checks>(ranks_here) : nullptr;
}

}  // namespace brant::mpi
