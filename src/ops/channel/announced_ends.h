#pragma once

#include <cstdint>
#include <unordered_map>

#include "brant/base/ids.h"
#include "core/joined_rank.h"
#include "ops/channel/link_message.h"

namespace brant {

/// An id and a side: one of the two ends of a channel. 33 bits.
constexpr std::uint64_t side_key(ChannelId id, unsigned side) noexcept { return std::uint64_t{id.value} << 1 | side; }

/// An id has an end for each peer that it was used with; one of them may be open. `rank`: of the peer.
constexpr std::uint64_t end_key(ChannelId id, unsigned side, std::int32_t rank) noexcept {
  return side_key(id, side) | static_cast<std::uint64_t>(rank) << 33;
}
/// What only one channel of this process may have: in a job an id names one channel, whoever has its ends. Jobs that
/// join know nothing of each other's ids, so there each pair of processes has its own.
constexpr std::uint64_t open_key(ChannelId id, unsigned side, std::int32_t rank) noexcept {
  return joined_rank::is_one(rank) ? end_key(id, side, rank) : side_key(id, side);
}

/// The ends that other ranks have opened and not closed since, before or after ours was opened.
class AnnouncedEnds {
 public:
  struct Announced {
    std::int32_t rank = -1;
    bool linked = false;
  };

  /// Throws bad_alloc.
  void add(const ChannelControl& opened) { ends_[key_of(opened)] = {opened.sender_rank, opened.linked != 0}; }
  /// Unless another rank has announced its end since.
  void remove(const ChannelControl& closed) noexcept {
    const auto announced = ends_.find(key_of(closed));
    if (announced != ends_.end() && announced->second.rank == closed.sender_rank) ends_.erase(announced);
  }
  void remove_all_of(std::int32_t rank) noexcept {
    std::erase_if(ends_, [rank](const auto& end) { return end.second.rank == rank; });
  }
  /// `rank`: with which the other end of the channel is opened here.
  [[nodiscard]] const Announced* find(ChannelId id, unsigned side, std::int32_t rank) const noexcept {
    const auto announced = ends_.find(open_key(id, side, rank));
    return announced == ends_.end() ? nullptr : &announced->second;
  }

 private:
  static std::uint64_t key_of(const ChannelControl& control) noexcept {
    return open_key(ChannelId{control.channel}, control.sender_side, control.sender_rank);
  }

  std::unordered_map<std::uint64_t, Announced> ends_;
};

}  // namespace brant
