#pragma once

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace brant::test {

/// Makes a host of its own of this process, in brant's and UCX's eyes: shared memory of its own. The network stays, so
/// that the ranks reach each other over it. Before the runtime is opened. False where the machine does not allow it.
inline bool become_own_host() {
  return ::unshare(CLONE_NEWIPC | CLONE_NEWUTS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWIPC | CLONE_NEWUTS) == 0;
}

/// Whether the machine allows it; asked in a child, since there is no way back.
inline bool own_hosts_allowed() {
  const pid_t child = ::fork();
  if (child == 0) std::_Exit(become_own_host() ? 0 : 1);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace brant::test
