#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/mpi/communicator.h"
#include "models/mpi/dynamic/contact.h"
#include "models/mpi/dynamic/ports.h"
#include "models/mpi/dynamic/talk.h"

namespace brant::mpi {

/// How two groups that know nothing of each other become the two of a communicator. The roots meet at a port and tell
/// each other of their groups; then each process of the group that connects joins those of the other, and all agree on
/// the context as they do for every communicator. Collective over `local`; what goes wrong at the root goes wrong at
/// all.

/// The contacts of all members, at all. Throws CallError, Error.
[[nodiscard]] std::vector<Contact> gather_contacts(Communicator& local);

/// What the root does until the root of the other group is at the door.
using Admit = std::function<Ports::Guest()>;
/// MPI_Comm_accept.
[[nodiscard]] std::unique_ptr<Communicator> accept_group(Communicator& local, int root, const Admit& admit);
/// Where the root goes, and for how long; asked there alone.
struct Where {
  std::string port;
  Ports::Limit limit;
};
using Destination = std::function<Where()>;
/// MPI_Comm_connect.
[[nodiscard]] std::unique_ptr<Communicator> connect_group(Communicator& local, int root, const Destination& to);

/// MPI_Intercomm_create where groups have members of several jobs, who may not have met. `talk`: of the leaders.
[[nodiscard]] std::unique_ptr<Communicator> introduce_group(Communicator& local, int leader,
                                                            const std::function<Talk()>& talk);

/// Makes the communicator with those whose contacts are known at all members of both groups. `label`: random, the same
/// at all. `calls`: of one of the two groups.
[[nodiscard]] std::unique_ptr<Communicator> make_between(Communicator& local, std::span<const Contact> others,
                                                         std::uint64_t label, bool calls);

}  // namespace brant::mpi
