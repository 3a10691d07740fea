#include "bench/halo/load.h"

#include <algorithm>
#include <map>

#include "brant/halo/halo_modes.h"
#include "models/halo/plan.h"

namespace brant::bench {
namespace {

bool rings(HaloMode mode) { return mode == HaloMode::stream || mode == HaloMode::stacked; }

}  // namespace

model::HaloLoad load_of(const HaloOptions& options, MemoryKind memory, int rank, int ranks) {
  const halo::Decomposition cut{options.grid, options.divide, options.periodic, options.ghost};
  cut.require_sense();
  const int blocks = cut.blocks() / ranks;
  const double cell_bytes = static_cast<double>(options.variables * options.cell_bytes);
  model::HaloLoad load;
  load.memory = host_accessible(memory) ? "host" : "device";
  load.packs = !is_bound(options.mode);
  load.notifies = rings(options.mode) && load.memory == "device";
  // In memory of the host the modes with kernels that stay do as `fused`.
  const bool fused = options.mode == HaloMode::fused || (rings(options.mode) && load.memory == "host");
  load.packs_first = fused && load.memory == "device";  // where it is a kernel that packs
  const bool whole = fused && options.messages == HaloMessages::per_process;
  std::map<std::pair<int, int>, double> messages;  // by what is one message
  for (int block = rank * blocks; block < (rank + 1) * blocks; ++block) {
    for (const halo::Message& message : halo::plan_block(cut, block).sends) {
      const double bytes = static_cast<double>(message.cells()) * cell_bytes;
      const int to = message.to / blocks;
      if (to == rank) {
        load.local_bytes += bytes;
        continue;
      }
      load.sent_bytes += bytes;
      messages[whole ? std::pair(to, 0) : std::pair(message.to, block)] += bytes;
    }
  }
  if (load.memory == "device" && (fused || options.mode == HaloMode::direct))
    load.launches = fused && !messages.empty() ? 2 : 1;  // where nothing comes, nothing is unpacked
  if (!load.packs || messages.empty()) return load;
  load.messages = static_cast<double>(messages.size());
  load.smallest_bytes = std::min_element(messages.begin(), messages.end(), [](const auto& a, const auto& b) {
                          return a.second < b.second;
                        })->second;
  return load;
}

model::HaloBound bound_of(const model::Parameters& parameters, const HaloOptions& options, MemoryKind memory,
                          int ranks) {
  model::HaloBound most;
  for (int rank = 0; rank < ranks; ++rank) {
    model::HaloBound bound = model::bound_halo(parameters, load_of(options, memory, rank, ranks));
    const double estimate = std::max(bound.estimate_us, most.estimate_us);
    if (rank == 0 || bound.us > most.us) most = std::move(bound);
    most.estimate_us = estimate;
  }
  return most;
}

}  // namespace brant::bench
