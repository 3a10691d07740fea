#pragma once

#include "base/object_pool.h"
#include "ops/channel/link_arrivals.h"
#include "ops/channel/traffic.h"
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

/// The records of one end's sends and receives, from the table's pools: lent when one begins, found by what concerns
/// them from outside (their operation is cancelled, their peer is lost), and given back when one has ended.
class ChannelRecords {
 public:
  explicit ChannelRecords(ChannelEndpoint& end) noexcept;

  /// Null if there is no record left, which is said.
  Transfer* take(bool is_send) noexcept;
  SmallReceive* take_small() noexcept;
  void attach(ChannelOp& record, Op& op) noexcept;
  void give_back(Transfer& transfer) noexcept;
  void give_back(SmallReceive& receive) noexcept;
  [[nodiscard]] bool none() const noexcept { return live_ == 0; }
  /// The receive of a message, or what drains it.
  Transfer* find_receive(std::uint64_t number, bool drains = false) noexcept;
  /// Ends what is pending: of the receives only those of message `first` and later ones. Returns how many it withdrew.
  std::size_t withdraw(Status why, std::uint64_t first = 0) noexcept;
  /// One of them: its peer is lost, it was cancelled, or its end is closed.
  void withdraw(ChannelOp& op, Status why) noexcept;
  /// Null if it is another layer's.
  static ChannelOp* op_of(PeerOp& op) noexcept {
    return op.lost == &ChannelRecords::on_lost ? static_cast<ChannelOp*>(&op) : nullptr;
  }

 private:
  ChannelOp* own(PeerOp& op) noexcept;
  void note_begun(ChannelOp& op) noexcept;
  void note_ended(bool was_send) noexcept;
  void trace(const Transfer& transfer) noexcept;
  static void on_lost(PeerOp& op) noexcept;
  static void on_cancel(OpOwner& owner) noexcept;

  ChannelEndpoint& end_;
  Engine& engine_;
  ChannelTraffic& traffic_;  ///< Of all channels.
  ChannelPools& pools_;
  std::size_t live_ = 0;
};

}  // namespace brant
