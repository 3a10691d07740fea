#pragma once

#include <cstddef>
#include <string>

#include "brant/base/buffer.h"

namespace brant::bench {

struct NotifyOptions {
  MemoryKind memory = MemoryKind::cuda;  ///< Of the device: cuda or emulated.
  std::size_t iterations = 10'000;
  bool check = false;  ///< Also look whether what was written before a ring is there behind it.
  std::string json;    ///< File to append rows to.
};

/// Measures what it costs to tell a CPU of a kernel that runs, and the other way. Two processes, each with a device of
/// its own. Throws Error.
void measure_notify(const NotifyOptions& options);

}  // namespace brant::bench
