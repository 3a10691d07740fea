#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brant {

class Engine;

/// What there is around a kernel that stays, of all that can keep it, or the work beside it, from running.
struct Surroundings {
  bool on_cuda = false;
  bool launches_block = false;  ///< CUDA_LAUNCH_BLOCKING.
  std::int64_t queues = 0;      ///< CUDA_DEVICE_MAX_CONNECTIONS; 0: not set, which is 8.
  bool loads_lazily = false;    ///< The program's own kernels come to the device when they are first launched.
  int processes = 1;            ///< Of this job, that use the device.
  bool take_turns = false;      ///< Processes that share it never run at once.
};

/// Throws invalid_argument: a variable that is no number.
Surroundings surroundings_of(Engine& engine);

/// Why no kernel can stay at all, with the cure; empty: it can.
std::string why_none_can_stay(const Surroundings& around);

/// What is worth a warning as a kernel is launched, a sentence each with its cure.
std::vector<std::string> dangers(const Surroundings& around);

/// What else may be why a kernel, or work that it waits for, did not run: for a report that it did not. The dangers
/// among them.
std::vector<std::string> suspects(const Surroundings& around);

}  // namespace brant
