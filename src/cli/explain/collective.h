#pragma once

#include <cstdint>
#include <string>

#include "brant/coll/collectives.h"

namespace brant::cli::explain {

/// A call of a team, as all its members see it.
struct CollectiveQuestion {
  CollectiveKind kind = CollectiveKind::allreduce;
  std::uint64_t bytes = 0;  ///< Of the vector, or of all blocks together.
  unsigned members = 2;
  unsigned hosts = 1;  ///< On which they are, as many on each as can be.
};

/// "allreduce", "reduce-scatter". Throws Error (invalid_argument), which names those there are.
CollectiveKind parse_collective(const std::string& name);

/// How a team carries the call out: the plan that all members come to.
std::string explain_collective(const CollectiveQuestion& question, bool json);

}  // namespace brant::cli::explain
