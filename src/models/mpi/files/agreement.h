#pragma once

#include <cstdint>
#include <optional>

#include "models/mpi/call_error.h"
#include "models/mpi/communicator.h"

namespace brant::mpi {

// What the members of a file do together: all of them call each of these, wait for each other, and get the same
// outcome.

/// Tells the others what became of this member's part. Throws it, or what became of another's.
void agree(Communicator& communicator, const std::optional<CallError>& own);
/// Throws MPI_ERR_NOT_SAME where members have different values.
void require_same(Communicator& communicator, std::int64_t value, const char* what);

template <typename Body>
void do_together(Communicator& communicator, const Body& body) {
  agree(communicator, error_in(body));
}
/// The first member alone does it, after all have come.
template <typename Body>
void do_at_first(Communicator& communicator, const Body& body) {
  agree(communicator, std::nullopt);
  do_together(communicator, [&] {
    if (communicator.rank == 0) body();
  });
}

}  // namespace brant::mpi
