#include "ops/channel/closed_ends.h"

namespace brant {

void ClosedEnds::remember(Peer& peer, std::uint64_t key, const ClosedEnd& end) {
  if (peer.lost || end.opened == 0) return;
  const auto [ends, is_first] = by_rank_.try_emplace(peer.rank.value);
  if (is_first) {
    ends->second.lost = [](PeerOp& self) noexcept { static_cast<OfPeer&>(self).by_key.clear(); };
    peer.add_outstanding(ends->second);
  }
  ends->second.by_key.insert_or_assign(key, end);
}

const ClosedEnd* ClosedEnds::find(std::int32_t rank, std::uint64_t key) const noexcept {
  const auto ends = by_rank_.find(rank);
  if (ends == by_rank_.end()) return nullptr;
  const auto end = ends->second.by_key.find(key);
  return end == ends->second.by_key.end() ? nullptr : &end->second;
}

void ClosedEnds::forget(std::int32_t rank, std::uint64_t key) noexcept {
  const auto ends = by_rank_.find(rank);
  if (ends != by_rank_.end()) ends->second.by_key.erase(key);
}

std::size_t ClosedEnds::count() const noexcept {
  std::size_t count = 0;
  for (const auto& [rank, ends] : by_rank_) count += ends.by_key.size();
  return count;
}

}  // namespace brant
