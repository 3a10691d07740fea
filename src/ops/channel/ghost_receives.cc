#include "ops/channel/ghost_receives.h"

#include "ops/channel/endpoint.h"
#include "ops/channel/shaped_bytes.h"
#include "ops/channel/table.h"

namespace brant {

void GhostReceives::add(Transfer& transfer) noexcept {
  transfer.ghost = true;
  ghosts_.push_back(transfer);
  end_.receives().return_turn(transfer);
  if (is_coming(transfer.state())) divert(transfer, transfer.wire().bytes);
}

void GhostReceives::divert(Transfer& ghost, std::uint64_t message_bytes) noexcept {
  if (ghost.is_staged()) return;  // it comes into a buffer of ours anyway
  const auto bytes = static_cast<std::size_t>(message_bytes);
  const bool kept = end_.moves().lease_stage(ghost, bytes) == Status::ok;  // if not, who hands it over says so
  ghost.here = kept ? ghost.staged(bytes) : Buffer(nullptr, bytes, MemoryKind::pinned);
  std::size_t come = 0;
  if (ghost.state() == TransferState::landing) come = static_cast<std::size_t>(ghost.moved);
  if (ghost.state() == TransferState::pulling) come = end_.table().mover().redirect(*ghost.move, ghost.here.data);
  if (kept && come != 0) copy_back(ghost, {static_cast<std::byte*>(ghost.here.data), come});
}

}  // namespace brant
