#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "cli/run/signals.h"

namespace brant::run {

/// How one process of the job is to be started. The descriptors stay the caller's; -1 means: as `brant run` has it.
struct RankStart {
  const std::string& program;                 ///< A file, as find_program() gives it.
  const std::vector<std::string>& arguments;  ///< The first is the name the program sees.
  const std::vector<std::string>& environment;
  const Signals& signals;
  rlimit files{};  ///< The limit of open files that `brant run` itself was given.
  int boot_socket = -1;
  std::vector<int> passed{};  ///< Besides the socket.
  std::string folder{};       ///< To run in; empty: as `brant run`.
  int input = -1;
  int output = -1;
  int errors = -1;
  std::optional<int> core{};  ///< The only core it may use.
};

/// A process and its group; the group's id is the pid.
struct RankProcess {
  pid_t pid = -1;
  UniqueFd pidfd;  ///< Readable once the process has ended.
};

/// Forks and executes; returns when the program is running. It leads a process group of its own and is killed by the
/// kernel if this process dies. Throws StartError, and then no process is left.
RankProcess start_rank(const RankStart& start);

/// How a process ended.
struct Ending {
  bool by_signal = false;
  int number = 0;  ///< The signal or the exit code.
  bool dumped = false;

  bool operator==(const Ending&) const noexcept = default;
  [[nodiscard]] bool failed() const noexcept { return by_signal || number != 0; }
  /// As a shell reports it: 128 + signal.
  [[nodiscard]] int exit_code() const noexcept { return by_signal ? 128 + number : number; }
  /// "ended with exit code 3", "was killed by signal 11 (Segmentation fault)".
  [[nodiscard]] std::string text() const;
};

/// It has ended, by a signal that it did not send itself by abort().
bool was_killed(pid_t pid) noexcept;

/// If the process has ended: ends what is left of its group, then reaps it.
std::optional<Ending> reap(pid_t pid) noexcept;

}  // namespace brant::run
