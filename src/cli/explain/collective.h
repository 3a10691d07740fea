#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "brant/coll/collectives.h"
#include "brant/coll/way.h"
#include "core/paths/collective_bands.h"

namespace brant::cli::explain {

/// Where the buffers of a call lie.
enum class CollectiveMemory : std::uint8_t {
  host,    ///< Of Runtime::allocate, or any other: both are told.
  heap,    ///< Of malloc: others cannot map it.
  device,  ///< Of a GPU, or an emulated device.
};

/// Who carries a call out.
enum class CollectiveTrigger : std::uint8_t { host, stream, graph };

/// A call of a team, as all its members see it.
struct CollectiveQuestion {
  CollectiveKind kind = CollectiveKind::allreduce;
  std::uint64_t bytes = 0;  ///< Of the vector, or of all blocks together.
  unsigned members = 2;
  unsigned hosts = 1;  ///< On which they are, as many on each as can be.
  CollectiveMemory memory = CollectiveMemory::host;
  CollectiveTrigger trigger = CollectiveTrigger::host;
  std::string way = "automatic";      ///< Forced: the name of a TeamWay, or, of streams and graphs, of a StreamWay.
  std::vector<CollectiveBand> bands;  ///< As they were measured here, and
  std::string bands_file;             ///< what says so; empty: nothing was measured.
};

struct CollectiveAnswer {
  std::string text;
  bool serves = true;  ///< False: the way that is forced does not carry the call out.
};

/// "allreduce", "reduce-scatter". Throws Error (invalid_argument), which names those there are.
CollectiveKind parse_collective(const std::string& name);

/// How a team carries the call out: the plan that all members come to. Throws Error (invalid_argument): no such way, or
/// what is asked does not fit together.
CollectiveAnswer explain_collective(const CollectiveQuestion& question, bool json);

}  // namespace brant::cli::explain
