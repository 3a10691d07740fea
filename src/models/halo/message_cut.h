#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "models/halo/layout.h"

namespace brant::halo {

/// Which links travel as one message. Both ends cut alike, since they know the same links with the same bytes.
struct MessageCut {
  static constexpr std::size_t kWhole = std::numeric_limits<std::size_t>::max();

  HaloMessages per = HaloMessages::per_process;
  /// Of `per_process`: what goes to one process is cut into groups of so many bytes, or of a quarter of it where that
  /// is more; kWhole: it is one.
  std::size_t group_bytes = kWhole;
};

/// Messages of the links, which are in the order of the ranks. In groups, the first of each rank come first, then the
/// second of each: no rank waits for all that goes to another one.
std::vector<std::span<const Link>> cut_into_messages(const std::vector<Link>& links, const MessageCut& cut);

}  // namespace brant::halo
