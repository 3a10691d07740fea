#pragma once

#include "models/mpi/communicator.h"

namespace brant::mpi {

/// Before the members of a communicator make something by messages that no collective of theirs comes before: whoever
/// calls something else would not answer those. Nothing where calls are not checked. By all members; waits for them.
/// Throws the error class of how they differ.
void require_same_call(Communicator& communicator);

}  // namespace brant::mpi
