#include "ops/channel/traffic.h"

#include <algorithm>
#include <tuple>

#include "ops/channel/table.h"

namespace brant {
namespace {

auto pair_of(const ChannelEnd& end) noexcept {
  return std::tuple(end.channel, std::min(end.rank, end.peer), std::max(end.rank, end.peer));
}

/// `other` has nothing for the receives of `end`, and no receives for its sends.
bool still(const ChannelEnd& end, const ChannelEnd& other) noexcept {
  const bool comes = end.first_receiving != ChannelEnd::kNone && other.next_send > end.first_receiving;
  const bool goes = end.first_sending != ChannelEnd::kNone && other.next_receive > end.first_sending;
  return !comes && !goes;
}

}  // namespace

bool nothing_comes(std::vector<ChannelEnd> ends) {
  std::sort(ends.begin(), ends.end(), [](const ChannelEnd& left, const ChannelEnd& right) {
    return std::tuple(pair_of(left), left.side) < std::tuple(pair_of(right), right.side);
  });
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const bool has_other = i + 1 < ends.size() && pair_of(ends[i]) == pair_of(ends[i + 1]);
    const ChannelEnd nobody;
    const ChannelEnd& other = has_other ? ends[i + 1] : nobody;
    if (!still(ends[i], other) || !still(other, ends[i])) return false;
    if (has_other) ++i;
  }
  return true;
}

std::vector<ChannelEnd> ChannelTable::ends() const {
  std::vector<ChannelEnd> ends;
  for (const auto& [key, endpoint] : endpoints_) {
    const ChannelEnd end = endpoint->account();
    if (!endpoint->hidden() && (end.next_send != 0 || end.next_receive != 0)) ends.push_back(end);
  }
  return ends;
}

namespace {

ChannelWait wait_of(const ChannelOp& op) noexcept {
  const ChannelEndpoint& end = op.endpoint;
  ChannelWait wait{end.id().value, end.side(), end.peer().rank.value, op.is_send, false, op.number};
  wait.bytes = op.buffer.bytes;
  wait.kind = op.buffer.kind;
  wait.since = op.posted_at;
  wait.held_back = op.is_send && static_cast<const Transfer&>(op).state() == TransferState::held_back;
  return wait;
}

}  // namespace

std::vector<ChannelWait> ChannelTable::waits() const {
  std::vector<ChannelWait> waits;
  std::vector<const Peer*> seen;
  for (const auto& [key, endpoint] : endpoints_) {
    const Peer& peer = endpoint->peer();
    if (std::find(seen.begin(), seen.end(), &peer) != seen.end()) continue;
    seen.push_back(&peer);
    for (PeerOp* op = peer.outstanding.front(); op != nullptr; op = peer.outstanding.next(*op)) {
      const ChannelOp* waiting = ChannelRecords::op_of(*op);
      if (waiting != nullptr && !waiting->endpoint.hidden() && waiting->observed()) waits.push_back(wait_of(*waiting));
    }
  }
  return waits;
}

}  // namespace brant
