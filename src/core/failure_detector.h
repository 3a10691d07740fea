#pragma once

#include <sys/types.h>

#include <vector>

#include "base/unique_fd.h"

namespace brant {

/// Notices the death of same-host processes through pidfds, 0.2 ms after the kernel knows (UCX alone may never notice).
/// The owner sleeps on `event_fd()` or asks `poll` now and then.
class FailureDetector {
 public:
  FailureDetector();

  /// False if the process is gone already, or on its way out. A process that cannot be watched (another pid namespace)
  /// counts as alive. May be repeated.
  bool watch(int rank, pid_t pid);
  void forget(int rank) noexcept;

  /// The ranks that died since the last call. Does not block.
  std::vector<int> poll();

  /// Readable while a death is unreported.
  [[nodiscard]] int event_fd() const noexcept { return epoll_.get(); }
  [[nodiscard]] bool watching() const noexcept { return !watched_.empty() || !by_pid_.empty(); }

 private:
  struct Watched {
    int rank;
    UniqueFd pidfd;
  };
  struct WatchedByPid {
    int rank;
    pid_t pid;
  };

  bool watch_by_pid(int rank, pid_t pid, const char* failed);

  UniqueFd epoll_;
  std::vector<Watched> watched_;
  std::vector<WatchedByPid> by_pid_;
};

}  // namespace brant
