#pragma once

#include "bench/runner/options.h"

namespace brant::bench {

/// How often a size is measured.
struct Plan {
  std::size_t warmup = 0;      ///< Round trips, or windows, before the timed ones.
  std::size_t iterations = 1;  ///< Timed ones, over all rounds.
  std::size_t rounds =
      1;  ///< The contenders take turns this often, so that a slow moment of the machine hits all of them.
  std::size_t checked = 1;  ///< Round trips, or windows, of the pass that looks at every byte.
};

/// Fewer for larger messages, so that a size takes about a second. What the user set goes first.
Plan plan_for(const Options& options, std::size_t bytes) noexcept;

}  // namespace brant::bench
