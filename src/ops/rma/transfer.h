#pragma once

#include <cstdint>

#include "brant/base/buffer.h"
#include "brant/core/path.h"
#include "core/engine.h"
#include "ops/copier/stager.h"

namespace brant {

class RmaTarget;

/// One end of a move: an address of this process, or one of the peer's that only the network reaches.
struct RmaPlace {
  void* address = nullptr;
  MemoryKind kind = MemoryKind::host;
  bool over_wire = false;
  std::uint64_t remote_address = 0;  ///< If over_wire.
};

/// The runtime's record of one put or get, lent from post to completion. The bytes move from their source to their
/// destination in one move, or piece by piece by way of a pinned buffer (path staged), two moves each.
struct RmaTransfer final : OpOwner, PeerOp {
  explicit RmaTransfer(RmaTarget& target_in) noexcept : target(target_in) {
    wire.owner = this;
    copy.owner = this;
  }

  struct WireStep : port::WireOp {
    RmaTransfer* owner = nullptr;
  };
  struct CopyStep : StageCopy {
    RmaTransfer* owner = nullptr;
  };
  /// What the CPU still has to copy of the present move.
  struct CpuStep {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::size_t left = 0;
  };

  RmaTarget& target;
  bool is_put = false;
  bool wants_delivered = false;
  bool source_is_free = false;
  bool leaving = false;  ///< Staged: the piece is in the buffer and moves on from there.
  Path path = Path::automatic;
  RmaPlace from;
  RmaPlace to;
  std::size_t bytes = 0;
  std::size_t moved = 0;  ///< Staged: what has arrived. Else all or nothing.
  StagePool::Lease lease;
  TimePoint posted_at{};  ///< Exact only with a trace.
  WireStep wire;
  CopyStep copy;
  CpuStep cpu;
  ListHook<RmaTransfer> cpu_hook;    ///< In the list of what the CPU copies.
  ListHook<RmaTransfer> flush_hook;  ///< In a list of what waits for a flush.
  ListHook<RmaTransfer> retry_hook;  ///< In the list of what the network had no room for.
};

}  // namespace brant
