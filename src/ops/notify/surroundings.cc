#include "ops/notify/surroundings.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/env.h"
#include "core/engine.h"
#include "port/memory.h"

namespace brant {
namespace {

/// What the driver has if it is told nothing.
constexpr std::int64_t kUsualQueues = 8;

int processes_on_device(Engine& engine) {
  const PeerRecord& mine = engine.peers().mine();
  if (mine.device_id.empty()) return 1;
  const Peers& all = engine.peers();
  return static_cast<int>(std::count_if(all.begin(), all.end(), [&](const Peer& each) {
    return each.record.host_id == mine.host_id && each.record.device_id == mine.device_id;
  }));
}

}  // namespace

Surroundings surroundings_of(Engine& engine) {
  const port::DeviceCapabilities& device = engine.device().capabilities();
  Surroundings around;
  around.on_cuda = device.offers(MemoryKind::cuda);
  around.loads_lazily = device.loads_lazily;
  around.take_turns = device.processes_take_turns;
  around.processes = processes_on_device(engine);
  if (!around.on_cuda) return around;
  around.launches_block = env_bool("CUDA_LAUNCH_BLOCKING", false);
  around.queues = env_int_in("CUDA_DEVICE_MAX_CONNECTIONS", 0, {0, std::numeric_limits<int>::max(), "queues"});
  return around;
}

std::string why_none_can_stay(const Surroundings& around) {
  if (!around.on_cuda || !around.launches_block) return {};
  return "would never be told anything: with CUDA_LAUNCH_BLOCKING=1 its launch waits for its end. Unset that";
}

std::vector<std::string> dangers(const Surroundings& around) {
  std::vector<std::string> found;
  if (around.queues > 0 && around.queues < kUsualQueues) {
    found.push_back(
        fmt::format("CUDA_DEVICE_MAX_CONNECTIONS={} puts streams behind each other in {} of the device's "
                    "queues, and what is behind a kernel that stays waits for its end: unset it, or set "
                    "32",
                    around.queues, around.queues));
  }
  if (around.processes > 1 && around.take_turns) {
    found.push_back(
        fmt::format("{} processes share the device and take turns, so that no kernel of another one runs "
                    "beside this one: start one process for each GPU, or NVIDIA's MPS",
                    around.processes));
  }
  return found;
}

std::vector<std::string> suspects(const Surroundings& around) {
  std::vector<std::string> found = dangers(around);
  if (around.loads_lazily) {
    found.emplace_back(
        "a kernel of the program that is launched for the first time is loaded then, which waits for kernels that "
        "stay: set CUDA_MODULE_LOADING=EAGER, or launch each once before");
  }
  return found;
}

}  // namespace brant
