#pragma once

#include <cstddef>

namespace brant::port::memory {

/// How an emulated device behaves. The defaults suit tests: as fast as the CPU goes.
struct EmulatedOptions {
  int ordinal = 0;
  /// What may be allocated at a time; 0: half of this machine's memory.
  std::size_t memory_bytes = 0;
  /// Commands a stream holds before callers wait.
  std::size_t queue_depth = 1024;
  /// Blocks of a kernel that are resident at once, each on a thread of its own, whatever their size.
  unsigned blocks_at_once = 32;
  /// Other processes map its memory by files alone, as GPU memory of pools and of cuMemCreate.
  bool files_only = false;
  /// How long a caller waits for a place in a full queue before it gets limit_reached.
  unsigned full_wait_ms = 2000;
  /// How long closing waits for work still running before it leaves the thread behind with a line in the log.
  unsigned close_wait_ms = 10000;
  /// Cost model: every command takes at least `command_us`, plus its bytes at `gigabytes_per_s`. 0 is off.
  double command_us = 0;
  double gigabytes_per_s = 0;
};

}  // namespace brant::port::memory
