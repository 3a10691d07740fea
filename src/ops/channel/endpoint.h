#pragma once

#include <memory>

#include "brant/ops/channel.h"
#include "ops/channel/channel_peer.h"
#include "ops/channel/closing.h"
#include "ops/channel/link_message.h"
#include "ops/channel/link_receiver.h"
#include "ops/channel/link_sender.h"
#include "ops/channel/local_matcher.h"
#include "ops/channel/moves.h"
#include "ops/channel/network.h"
#include "ops/channel/paths.h"
#include "ops/channel/receives.h"
#include "ops/channel/records.h"
#include "ops/channel/sends.h"
#include "ops/channel/traffic.h"

namespace brant {

class ChannelTable;

/// One end of a channel. It owns the parts that keep the rules of `Channel`, which know each other by way of it, and
/// passes on to them what comes from the other end.
class ChannelEndpoint {
 public:
  /// Throws bad_alloc.
  ChannelEndpoint(ChannelTable& table, Peer& peer, ChannelId id, unsigned side, Path forced);
  ~ChannelEndpoint();
  ChannelEndpoint(const ChannelEndpoint&) = delete;
  ChannelEndpoint& operator=(const ChannelEndpoint&) = delete;

  [[nodiscard]] ChannelTable& table() noexcept { return table_; }
  [[nodiscard]] Engine& engine() const noexcept { return engine_; }
  [[nodiscard]] Peer& peer() noexcept { return peer_; }
  [[nodiscard]] const Peer& peer() const noexcept { return peer_; }
  /// What all ends with this peer share.
  [[nodiscard]] ChannelPeer& shared() noexcept { return shared_; }
  [[nodiscard]] ChannelId id() const noexcept { return id_; }
  [[nodiscard]] unsigned side() const noexcept { return side_; }
  /// Carries arguments of chares, which count what is under way themselves.
  [[nodiscard]] bool hidden() const noexcept { return hidden_; }
  /// The messages are agreed upon over the link of the two processes.
  [[nodiscard]] bool linked() const noexcept { return linked_; }
  /// The other end is in this process, and its messages are matched here.
  [[nodiscard]] bool matched_here() const noexcept { return matched_here_; }
  /// The messages are agreed upon by tags of the network alone.
  [[nodiscard]] bool by_network() const noexcept { return !linked_ && !matched_here_; }
  [[nodiscard]] MemoryKind mutual_kind() const noexcept { return mutual_kind_; }

  [[nodiscard]] ChannelPaths& paths() noexcept { return paths_; }
  [[nodiscard]] ChannelRecords& records() noexcept { return records_; }
  [[nodiscard]] ChannelNetwork& network() noexcept { return network_; }
  [[nodiscard]] ChannelMoves& moves() noexcept { return moves_; }
  [[nodiscard]] ChannelSends& sends() noexcept { return sends_; }
  [[nodiscard]] ChannelReceives& receives() noexcept { return receives_; }
  [[nodiscard]] ChannelClosing& closing() noexcept { return closing_; }
  /// Both are null if the processes share no memory. They may be there where `linked` is false.
  [[nodiscard]] LinkSender* link_sender() const noexcept { return link_sender_.get(); }
  [[nodiscard]] LinkReceiver* link_receiver() const noexcept { return link_receiver_.get(); }
  /// Null if the other end is in another process. It may be there where `matched_here` is false.
  [[nodiscard]] LocalMatcher* local() const noexcept { return local_.get(); }

  [[nodiscard]] ChannelCounts counts() const noexcept;
  [[nodiscard]] ChannelEnd account() noexcept;
  /// ok, or why everything is refused.
  [[nodiscard]] Status refused() const noexcept { return refused_; }
  /// Refuses everything from now on, and ends what is pending: the two ends do not fit together, or a message was lost.
  void refuse(Status status) noexcept;
  /// Opened again; the numbering goes on. Throws bad_alloc, and is as it was.
  void reopen(Path forced);

  void on_control(const ChannelControl& control) noexcept;
  void on_link(const LinkMessage& message, std::span<const std::byte> payload) noexcept;
  /// Tells besides how far the receives have come.
  void send_control(ChannelControl::Kind kind, std::uint64_t number, Status status = Status::ok,
                    std::uint32_t linked = 0) noexcept;
  [[nodiscard]] LinkMessage link_message(LinkMessage::Kind kind) const noexcept;
  [[nodiscard]] LinkMessage link_message(LinkMessage::Kind kind, const Transfer& transfer) const noexcept;
  /// The bytes have gone or come, or never will: `transfer.wire()` says what became of it.
  void carried(Transfer& transfer) noexcept;
  /// The same, with what became of it. in_progress: nothing yet.
  void carried(Transfer& transfer, Status status) noexcept {
    if (status == Status::in_progress) return;
    transfer.wire().status = status;
    carried(transfer);
  }
  /// What its owner is told, where the network says `status`.
  Status final_status(const Transfer& transfer, Status status) noexcept {
    return status == Status::ok || status == Status::truncated ? status : failed_status(transfer, status);
  }

  ListHook<ChannelEndpoint> closed_hook;  ///< In the table's list of ends that may have settled.

 private:
  void use_link(Path forced);
  Status failed_status(const Transfer& transfer, Status status) noexcept;
  [[nodiscard]] bool is_possible(const ChannelControl& control) const noexcept;

  ChannelTable& table_;
  Engine& engine_;
  Peer& peer_;
  ChannelPeer& shared_;
  const ChannelId id_;
  const unsigned side_;
  const bool hidden_;
  bool linked_ = false;
  bool matched_here_ = false;
  MemoryKind mutual_kind_ = MemoryKind::detect;  ///< See Engine::mutual_kind; known with the link.
  Status refused_ = Status::ok;
  ChannelPaths paths_;
  ChannelRecords records_;
  ChannelNetwork network_;
  ChannelMoves moves_;
  ChannelSends sends_;
  ChannelReceives receives_;
  ChannelClosing closing_;
  std::unique_ptr<LinkSender> link_sender_;
  std::unique_ptr<LinkReceiver> link_receiver_;
  std::unique_ptr<LocalMatcher> local_;
};

// On the way of each small message: no calls are made for them.

inline void ChannelRecords::note_begun(ChannelOp& op) noexcept {
  ++live_;
  ++traffic_.moves;
  if (op.is_send && !end_.hidden()) ++traffic_.sending;
  op.posted_at = engine_.trace() != nullptr ? Clock::now() : engine_.clock().recently();
  op.lost = &ChannelRecords::on_lost;
  op.cancel = &ChannelRecords::on_cancel;
}

inline void ChannelRecords::note_ended(bool was_send) noexcept {
  --live_;
  ++traffic_.moves;
  if (end_.closing().closed()) [[unlikely]]
    end_.closing().on_ended(was_send);
}

inline SmallReceive* ChannelRecords::take_small() noexcept {
  SmallReceive* receive = pools_.small_receives.take(end_);
  if (receive == nullptr) [[unlikely]] {
    if (pools_.small_receives.refusal() == Status::limit_reached) pools_.tell_limit();
    return nullptr;
  }
  note_begun(*receive);
  return receive;
}

inline void ChannelRecords::attach(ChannelOp& record, Op& op) noexcept {
  record.own(engine_.completions(), op);
  end_.peer().add_outstanding(record);
}

inline void ChannelRecords::give_back(SmallReceive& receive) noexcept {
  end_.peer().remove_outstanding(receive);
  pools_.small_receives.give_back(&receive);
  note_ended(false);
}

}  // namespace brant
