#pragma once

#include <cstdint>

namespace brant::detail {

/// What the chares of this process have done, and what is on their stack. Every part counts here what it does itself;
/// the end of a program and quiescence are proven by these numbers, and `Chares::counts` shows them.
struct Activity {
  std::uint64_t calls_sent = 0;  ///< Invocations that `exit` waits for: asked for here,
  std::uint64_t calls_run = 0;   ///< and run, or answered for, here.
  std::int64_t kept = 0;         ///< Arrived, and wait for a `when`: they count as run, but no program ends with them.
  std::uint64_t held_back = 0;   ///< Calls that had to wait for room.
  std::uint64_t wire_sent = 0;   ///< Messages to other ranks, without those of the ending,
  std::uint64_t wire_taken = 0;  ///< and those that came from them.
  std::uint64_t ran = 0;         ///< Messages run.
  std::uint64_t data_started = 0;  ///< Data on its way outside messages. Quiescence waits until all that has started
  std::uint64_t data_ended = 0;    ///< has ended, on whatever rank.

  unsigned running = 0;       ///< Messages whose entry is on the stack.
  unsigned hold_depth = 0;    ///< Callers on the stack that are held back.
  bool in_progress = false;   ///< The network is being moved: a coroutine that resumes there must not move it again.
  bool time_used_up = false;  ///< One message that runs many calls has taken as long as a round may.
};

}  // namespace brant::detail
