#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/joined_rank.h"
#include "core/peer.h"

namespace brant {

/// Where the processes that have joined this one are kept: each in a slot, which its rank names (`joined_rank.h`).
class JoinedSlots {
 public:
  JoinedSlots() = default;
  JoinedSlots(const JoinedSlots&) = delete;
  JoinedSlots& operator=(const JoinedSlots&) = delete;

  /// A peer with a rank of its own, which stays in place. `called`: by this process. Throws limit_reached, bad_alloc.
  Peer& add(bool called);
  /// Nobody knows the peer any more: its slot may be used again.
  void remove(const Peer& peer) noexcept;

  /// Null if it was removed, or never was there.
  [[nodiscard]] Peer* find(std::int32_t rank) const noexcept {
    const std::size_t slot = joined_rank::slot_of(rank);
    Peer* peer = slot < slots_.size() ? slots_[slot].peer.get() : nullptr;
    return peer != nullptr && peer->rank.value == rank ? peer : nullptr;
  }
  /// `visit` may add some, who may be visited too.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (slots_[slot].peer != nullptr) visit(*slots_[slot].peer);
    }
  }

 private:
  struct Slot {
    std::unique_ptr<Peer> peer;    ///< Null: it is free.
    std::uint32_t generation = 0;  ///< How often it was used before.
  };

  std::vector<Slot> slots_;
};

}  // namespace brant
