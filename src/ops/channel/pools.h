#pragma once

#include "base/object_pool.h"
#include "ops/channel/link_arrivals.h"
#include "ops/channel/transfer.h"

namespace brant {

/// The records that all ends of a process share.
struct ChannelPools {
  static constexpr std::size_t kTransfersMax = 65536;

  /// Sends and receives that have not ended.
  [[nodiscard]] std::size_t live() const noexcept { return transfers.lent() + small_receives.lent(); }
  /// No record is left for another one: said once.
  void tell_limit() noexcept;

  ObjectPool<Transfer> transfers{kTransfersMax};
  ObjectPool<TransferMove> moves{kTransfersMax};
  ObjectPool<OwnShape> shapes{kTransfersMax};
  ObjectPool<SmallReceive> small_receives{kTransfersMax};
  ObjectPool<Arrival> arrivals{LinkArrivals::kMax};
  bool limit_told = false;
};

}  // namespace brant
