#include "models/halo/plan.h"

#include <algorithm>

namespace brant::halo {
namespace {

constexpr int kOffsets = 27;

Offset offset_of(int index) noexcept { return {index / 9 - 1, index / 3 % 3 - 1, index % 3 - 1}; }
Offset opposite(const Offset& offset) noexcept { return {-offset[0], -offset[1], -offset[2]}; }

/// The ghosts of `to` in the direction `offset`, which belong to `from`.
Region region_of(const Decomposition& cut, int from, int to, const Offset& offset) noexcept {
  const Cells source = cut.array_of(from);
  const Cells target = cut.array_of(to);
  const Box owned = cut.owned_by(to);
  Region region;
  for (std::size_t d = 0; d < kDims; ++d) {
    const std::int64_t ghost = cut.ghost[d];
    if (offset[d] == 0) {  // the two lie side by side, and own the same cells along this dimension
      region.to.low[d] = region.from.low[d] = owned.low[d];
      region.to.high[d] = region.from.high[d] = owned.high[d];
      continue;
    }
    region.to.low[d] = offset[d] < 0 ? 0 : target[d] - ghost;
    region.from.low[d] = offset[d] < 0 ? source[d] - 2 * ghost : ghost;
    region.to.high[d] = region.to.low[d] + ghost;
    region.from.high[d] = region.from.low[d] + ghost;
  }
  return region;
}

void add(std::vector<Message>& messages, int from, int to, const Region& region) {
  if (region.to.cells() == 0) return;
  auto same = std::find_if(messages.begin(), messages.end(),
                           [&](const Message& message) { return message.from == from && message.to == to; });
  if (same == messages.end()) same = messages.insert(messages.end(), Message{from, to, {}});
  same->regions.push_back(region);
}

void order(std::vector<Message>& messages, int block, int Message::* partner) {
  std::sort(messages.begin(), messages.end(), [&](const Message& left, const Message& right) {
    const bool left_wraps = left.*partner < block;
    const bool right_wraps = right.*partner < block;
    return left_wraps != right_wraps ? right_wraps : left.*partner < right.*partner;
  });
}

}  // namespace

std::int64_t Message::cells() const noexcept {
  std::int64_t sum = 0;
  for (const Region& region : regions) sum += region.to.cells();
  return sum;
}

BlockPlan plan_block(const Decomposition& cut, int block) {
  BlockPlan plan;
  for (int i = 0; i < kOffsets; ++i) {
    const Offset offset = offset_of(i);  // as the receiver sees it, at both ends: so they agree on the order
    if (offset == Offset{}) continue;
    if (const auto owner = cut.neighbour(block, offset)) {
      add(plan.receives, *owner, block, region_of(cut, *owner, block, offset));
    }
    if (const auto receiver = cut.neighbour(block, opposite(offset))) {
      add(plan.sends, block, *receiver, region_of(cut, block, *receiver, offset));
    }
  }
  order(plan.receives, block, &Message::from);
  order(plan.sends, block, &Message::to);
  return plan;
}

}  // namespace brant::halo
