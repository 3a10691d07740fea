#include "core/joined_slots.h"

#include <algorithm>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant {

Peer& JoinedSlots::add(bool called) {
  auto free = std::ranges::find_if(slots_, [](const Slot& slot) { return slot.peer == nullptr; });
  if (free == slots_.end()) {
    if (slots_.size() == joined_rank::kSlots) {
      throw Error(
          Status::limit_reached,
          fmt::format("{} processes have joined this one, which are as many as it takes: `Runtime::leave` those "
                      "that are not needed, and close what is open with them",
                      slots_.size()));
    }
    free = slots_.emplace(slots_.end());
  }
  free->peer = std::make_unique<Peer>();
  free->peer->joined = true;
  free->peer->rank =
      Rank{joined_rank::make(static_cast<std::uint32_t>(free - slots_.begin()), free->generation, called)};
  return *free->peer;
}

void JoinedSlots::remove(const Peer& peer) noexcept {
  Slot& slot = slots_[joined_rank::slot_of(peer.rank.value)];
  slot.generation = (slot.generation + 1) % joined_rank::kGenerations;
  slot.peer.reset();
}

}  // namespace brant
