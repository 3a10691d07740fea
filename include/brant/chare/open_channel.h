#pragma once

#include <cstdint>

#include "brant/base/api.h"
#include "brant/chare/element.h"
#include "brant/core/future.h"
#include "brant/ops/channel.h"

namespace brant {

struct ChareChannelOptions {
  /// Tells several channels of one pair of chares apart; the same at both ends.
  std::uint32_t number = 0;
  /// Forces the path, for measuring; see ChannelOptions.
  Path path = Path::automatic;
};

namespace detail {
BRANT_API Future<Channel> open_channel(Core& core, const Target& mine, const Target& theirs,
                                       const ChareChannelOptions& options);
}

/// Opens a channel between two chares; both call it, each naming the other:
///
///     Task<void> Block::exchange() {
///       Channel right = co_await open_channel(*this, this_array()[index()[0] + 1]);
///       Operation incoming = right.recv(ghost_);
///       const OpResult sent = co_await right.send(face_), got = co_await incoming;
///       if (!sent.ok() || !got.ok()) ...
///     }
///
/// The future is ready when the two have found each other: a message each way. The end belongs to whoever holds the
/// `Channel`: as a member or in a coroutine it is closed with its chare. Many may be open between two processes, and
/// within one. The two agree on an id by themselves: the end with the smaller name takes one from the share of its rank
/// (15 million ids divided by the ranks), never twice in the life of the Runtime.
///
/// The future throws limit_reached (that share is used up), peer_lost; canceled when the program ends, or when the same
/// chare asks again for the same pair and number before it is ready. An element that never calls back is waited for
/// without end, and named when the program can do nothing else (see Chares, deadlock). Worker's thread.
///
/// Source: Channel API, section 3.2 of "Accelerating communication for parallel programming models on GPU systems"
/// (2022), where the ids were the user's to choose, and both ends of one process shared a tag space.
template <typename D, ElementIndex I, typename C>
Future<Channel> open_channel(const Chare<D, I>& self, const Element<C>& peer, const ChareChannelOptions& options = {}) {
  return detail::open_channel(self.chares().core(), self.this_element().target(), peer.target(), options);
}

}  // namespace brant
