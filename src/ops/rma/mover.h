#pragma once

#include <memory>
#include <unordered_map>

#include "ops/copier/device_copier.h"
#include "ops/copier/stager.h"
#include "ops/rma/cpu_copier.h"
#include "ops/rma/flusher.h"
#include "ops/rma/transfer.h"

namespace brant {

/// Moves the bytes of puts and gets: by the CPU, the device or the network, at once or by way of a pinned buffer.
class RmaMover final : private Poller {
 public:
  /// Of the path staged: a piece is in the pinned buffer at a time.
  static constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

  explicit RmaMover(Engine& engine);
  ~RmaMover() { engine_.detach(static_cast<Poller&>(*this)); }

  [[nodiscard]] Engine& engine() noexcept { return engine_; }
  [[nodiscard]] DeviceCopier& device_copier() noexcept { return device_copier_; }

  /// Starts a transfer whose path and ends are set. ok: it is done. in_progress: `RmaTarget::ended` is told of its end,
  /// from progress. Else nothing was started.
  Status begin(RmaTransfer& transfer) noexcept;
  /// What can be stopped is stopped; the caller ends the transfer. False: it goes on, and ends by itself.
  bool withdraw(RmaTransfer& transfer) noexcept;
  /// Gives back what the transfer has borrowed.
  void release(RmaTransfer& transfer) noexcept;
  /// Made before the first put to a peer over the network. Throws std::bad_alloc.
  void prepare(Peer& peer);

 private:
  /// Moves until something takes time, or all is done.
  Status advance(RmaTransfer& transfer) noexcept;
  Status start_move(RmaTransfer& transfer) noexcept;
  Status move(RmaTransfer& transfer, const RmaPlace& to, const RmaPlace& from, std::size_t bytes) noexcept;
  Status copy_by_device(RmaTransfer& transfer, const RmaPlace& to, const RmaPlace& from, std::size_t bytes) noexcept;
  Status over_wire(RmaTransfer& transfer, const RmaPlace& to, const RmaPlace& from, std::size_t bytes) noexcept;
  /// All bytes have left their source; those of a put over the network may still be under way.
  Status all_moved(RmaTransfer& transfer) noexcept;
  /// A move that took time has ended.
  void moved(RmaTransfer& transfer, Status status) noexcept;
  void go_on(RmaTransfer& transfer, Status status) noexcept;
  /// Moves that the network had no room for.
  unsigned poll() noexcept override;

  Engine& engine_;
  DeviceCopier& device_copier_;
  Stager stager_;
  CpuCopier cpu_copier_;
  std::unordered_map<std::int32_t, std::unique_ptr<Flusher>> flushers_;  ///< By rank.
  IntrusiveList<RmaTransfer, &RmaTransfer::retry_hook> retries_;
};

}  // namespace brant
