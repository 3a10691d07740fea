#include <algorithm>

#include "channel_halo.h"
#include "models.h"

namespace jacobi {

std::vector<Solution> solve_with_channels(brant::Runtime& runtime, Share& share, const Plan& plan, brant::Path path) {
  Block& block = *share.blocks[0];
  ChannelHalo halo(block);
  for (int side = 0; side < kSides; ++side) {
    const std::optional<int> neighbour = share.cut.neighbour(share.first, side);
    if (!neighbour) continue;
    // The channel between two blocks has the number of the lower one, and the axis.
    const int number = std::min(share.first, *neighbour) * 3 + axis_of(side);
    const brant::ChannelId id{static_cast<std::uint32_t>(number)};
    halo.add(side, *neighbour, brant::Channel::open(runtime, brant::Rank{*neighbour}, id, {.path = path}));
  }
  std::vector<Solution> solutions;
  solutions.push_back(runtime.run(solve(block, *share.stencils[0], halo, plan)));
  return solutions;
}

}  // namespace jacobi
