#pragma once

#include <cstdint>
#include <string>

#include "brant/base/result.h"

namespace brant {

/// What Linux says of a process in /proc/PID/stat.
struct ProcessStat {
  std::string name;              ///< Of its program, cut to 15 bytes.
  char state = 0;                ///< R, S, D, T, Z, X and so on.
  std::int32_t parent = 0;       ///< Pid.
  std::uint32_t flags = 0;       ///< PF_ bits of the kernel.
  std::uint64_t start_time = 0;  ///< Clock ticks after the start of the machine: with the pid, no other process has it.

  /// It has died, and only its parent has not heard it yet.
  [[nodiscard]] bool dead() const noexcept { return state == 'Z' || state == 'X'; }
  /// A signal holds it, or a debugger.
  [[nodiscard]] bool stopped() const noexcept { return state == 'T' || state == 't'; }
  /// It dies: set before its sockets are closed and its memory is freed.
  [[nodiscard]] bool exiting() const noexcept { return dead() || (flags & 0x4u) != 0; }  // PF_EXITING
};

/// peer_lost: there is no such process. io_error: Linux writes something else there. Reads a file of the kernel: some
/// microseconds.
Result<ProcessStat> read_process_stat(std::int32_t pid) noexcept;

}  // namespace brant
