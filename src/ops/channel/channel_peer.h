#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "ops/channel/closing.h"
#include "ops/channel/link_pump.h"

namespace brant {

/// How long closing a channel waits for a peer that may still read a source: `kWhole` for all channels to that peer
/// together, so that a program with many of them ends in time. The peer gets the whole again once it let a source go,
/// or shows otherwise that it moves.
class SourcePatience {
 public:
  static constexpr std::chrono::nanoseconds kWhole = std::chrono::seconds(5);

  [[nodiscard]] std::chrono::nanoseconds left() const noexcept { return kWhole - spent_; }
  void waited(std::chrono::nanoseconds time, bool came_free) noexcept {
    spent_ = came_free ? std::chrono::nanoseconds(0) : std::min(kWhole, spent_ + time);
  }
  /// From a peer that had no patience left this shows that it moves again.
  void heard_from() noexcept { spent_ = {}; }

 private:
  std::chrono::nanoseconds spent_{};  ///< If it did not move at the last wait.
};

/// What all ends of this process share that have the same peer, and what is left of those that are gone.
struct ChannelPeer final : private PeerOp {
  explicit ChannelPeer(Peer& peer_in) noexcept : peer(peer_in) {
    lost = [](PeerOp& self) noexcept { static_cast<ChannelPeer&>(self).closed.clear(); };
  }
  ChannelPeer(const ChannelPeer&) = delete;
  ChannelPeer& operator=(const ChannelPeer&) = delete;
  ~ChannelPeer() { peer.remove_outstanding(*this); }

  /// What is left of a closed end, while the peer lives. Throws bad_alloc.
  void remember(std::uint64_t side_key, const ClosedEnd& end) {
    if (peer.lost || end.opened == 0) return;
    closed.insert_or_assign(side_key, end);
    peer.remove_outstanding(*this);
    peer.add_outstanding(*this);
  }
  /// Its program has ended, and all has come that it said of its ends: how much each has sent, so that this process
  /// knows what still comes, and ends the rest of its receives at once. The farewell and the words may overtake each
  /// other.
  [[nodiscard]] bool has_said_all() const noexcept { return peer.ended && words >= peer.farewell_words; }

  Peer& peer;
  std::unique_ptr<LinkPump> pump;                               ///< Null if there is no link, or no end was there yet.
  std::unordered_map<std::uint64_t, ClosedEnd> closed;          ///< By side_key of this process's end.
  std::unordered_map<std::uint64_t, std::uint64_t> sent_there;  ///< By side_key of its end, once its program has ended.
  std::uint32_t words = 0;
  SourcePatience patience;
  std::size_t controls_waiting = 0;  ///< At the ControlSender.
  bool network_full = false;         ///< For them, at its last look.
};

}  // namespace brant
