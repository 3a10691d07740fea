#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "models/mpi/checks/census.h"
#include "models/mpi/checks/given_memory.h"
#include "models/mpi/checks/message_labels.h"

namespace brant::mpi {

/// What a process keeps where BRANT_MPI_CHECK is set, to find what programs do wrong and the standard lets no library
/// find without a cost: data that its receive does not describe, members that call different collectives, memory that
/// goes while it is in use, objects that nobody frees (docs/decisions/0095). Elsewhere there is none, and each place
/// that would tell it something asks so first. Without memory for what it keeps, it ends the process.
///
/// Calls of MPI do not overlap, so it needs no lock.
class Checks {
 public:
  explicit Checks(std::size_t ranks_here) : calls_(ranks_here, "MPI_Init"), collectives_(ranks_here) {}
  Checks(const Checks&) = delete;
  Checks& operator=(const Checks&) = delete;

  /// The rank that runs is in this function of MPI.
  void enter(const char* function) noexcept;
  /// The latest one of a rank of this process.
  [[nodiscard]] const char* call_of(std::size_t slot) const noexcept { return calls_[slot]; }
  [[nodiscard]] const char* current_call() const noexcept;

  /// The rank that runs waits in a collective until all members have told what they call; empty: it does no longer.
  void wait_in_collective(std::string said) noexcept;
  /// Empty: the rank waits in none.
  [[nodiscard]] const std::string& collective_of(std::size_t slot) const noexcept { return collectives_[slot]; }

  MessageLabels labels;
  Census census;
  GivenMemory memory;

 private:
  std::vector<const char*> calls_;
  std::vector<std::string> collectives_;
};

namespace detail {
inline constinit Checks* the_checks = nullptr;
}

/// Null: calls are not checked.
[[nodiscard]] inline Checks* checks() noexcept { return detail::the_checks; }

/// Those of a process, while that is there. BRANT_MPI_CHECK says whether there are any; throws Error where it says
/// neither yes nor no.
[[nodiscard]] std::unique_ptr<Checks> checks_of_environment(std::size_t ranks_here);

}  // namespace brant::mpi
