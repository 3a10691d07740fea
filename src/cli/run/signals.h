#pragma once

#include <csignal>
#include <optional>

#include "base/unique_fd.h"

namespace brant::run {

/// Turns the signals a supervisor cares about into a descriptor, and ignores those that would stop it. A signal that
/// was ignored when `brant run` started (nohup) stays ignored. Restores everything at the end. One per process.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// The next signal that came: SIGINT, SIGTERM, SIGHUP, SIGTSTP or SIGCONT. Does not block.
  std::optional<int> next() noexcept;
  /// Gives a forked process the signals that `brant run` was started with. Async-signal-safe.
  void restore_in_child() const noexcept;

 private:
  UniqueFd fd_;
  sigset_t old_mask_{};
  struct sigaction old_pipe_{};
  struct sigaction old_tty_in_{};
  struct sigaction old_tty_out_{};
};

}  // namespace brant::run
