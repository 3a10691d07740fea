#pragma once

#include <sys/types.h>

#include "base/unique_fd.h"

namespace brant::run {

/// A small process that outlives a `brant run` that was killed with -9, just long enough to end the process groups of
/// its ranks. (PR_SET_PDEATHSIG reaches only the ranks themselves, not what they started.) It learns the groups over a
/// pipe and acts when the pipe closes without a farewell.
class Guardian {
 public:
  /// Forks; call it before any rank exists. Throws StartError.
  Guardian();
  /// Sends the farewell and waits for the process to end.
  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  void watch(pid_t group) noexcept;
  void forget(pid_t group) noexcept;

 private:
  void tell(pid_t number) noexcept;

  UniqueFd pipe_;
  pid_t pid_ = -1;
};

}  // namespace brant::run
