#include "models/mpi/checks/same_call.h"

#include "models/mpi/call_error.h"
#include "models/mpi/checks/checks.h"
#include "models/mpi/checks/said_call.h"

namespace brant::mpi {

void require_same_call(Communicator& communicator) {
  if (checks() == nullptr) [[likely]]
    return;
  const SaidCall said = SaidCall::current();
  RankTeam& team = communicator.team();
  const Status status = team.run(barrier(), &said).status;
  require(status == Status::ok, team.error_class(status), "{}", team.fault());
}

}  // namespace brant::mpi
