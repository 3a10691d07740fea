#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>

#include "core/joined_rank.h"
#include "ops/channel/announced_ends.h"
#include "ops/channel/channel_peer.h"
#include "ops/channel/control_sender.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/stall_report.h"
#include "ops/channel/traffic.h"
#include "ops/mapping/table.h"
#include "ops/mover/mover.h"

namespace brant {

/// All channel ends of one runtime, and what they share: records, stage buffers, the control message handler.
class ChannelTable final : public Service, private Poller, private DeferredWork {
 public:
  explicit ChannelTable(Engine& engine);
  ~ChannelTable() override {
    engine_.pollers().detach(*this);
    engine_.deferrals().take_back(*this);
  }

  [[nodiscard]] Engine& engine() const noexcept { return engine_; }
  [[nodiscard]] Mover& mover() noexcept { return mover_; }
  [[nodiscard]] StagePool& stages() noexcept { return *stages_; }
  [[nodiscard]] ChannelPools& pools() noexcept { return pools_; }
  [[nodiscard]] ControlSender& controls() noexcept { return controls_; }
  [[nodiscard]] const AnnouncedEnds& announced() const noexcept { return announced_; }
  /// Throws bad_alloc.
  ChannelPeer& with(Peer& peer) { return peers_.try_emplace(peer.rank.value, peer).first->second; }
  /// What waits for room on the link to a peer, which must have one. Throws only if memory is exhausted.
  LinkPump& pump(Peer& peer);

  /// Throws invalid_argument, peer_lost. Within a process `side` is the caller's choice; without one whoever comes
  /// first has side 0. Else the ranks decide.
  ChannelEndpoint& open(Rank peer, ChannelId id, Path forced, std::optional<unsigned> own_side = std::nullopt);

  void note_closed(const ChannelEndpoint& endpoint) noexcept {
    open_ends_.erase(open_key(endpoint.id(), endpoint.side(), endpoint.peer().rank.value));
  }
  /// An end has settled: unless that changes, its numbers are all that the next progress leaves of it.
  void forget_later(ChannelEndpoint& endpoint) noexcept;
  void keep(ChannelEndpoint& endpoint) noexcept {
    if (SettledEnds::linked(endpoint)) settled_.remove(endpoint);
  }
  /// Ends that are open, or have something under way or kept for them.
  [[nodiscard]] std::size_t ends_in_use() const noexcept { return endpoints_.size(); }
  /// Others, of which their numbers are left.
  [[nodiscard]] std::size_t ends_remembered() const noexcept;
  /// Peers whose memory this process has mapped for channels, or may have.
  [[nodiscard]] std::size_t links_in_use() const noexcept {
    return static_cast<std::size_t>(
        std::ranges::count_if(peers_, [](const auto& known) { return known.second.pump != nullptr; }));
  }

  /// `visit` must not open an end.
  template <typename Visit>
  void for_each_end_with(const Peer& peer, Visit&& visit) noexcept {
    for (const auto& [key, endpoint] : endpoints_) {
      if (&endpoint->peer() == &peer) visit(*endpoint);
    }
  }

  // Of a service.
  unsigned part_from(Peer& peer) noexcept override;
  void peer_ended(Peer& peer) noexcept override;
  bool forget(Peer& peer) noexcept override;
  bool stalled(std::chrono::nanoseconds idle, bool for_ever) noexcept override { return stall_.tell(idle, for_ever); }

  // What is under way, for whoever wants to know whether a job can go on (traffic.cc).
  [[nodiscard]] ChannelTraffic& traffic() noexcept { return traffic_; }
  /// Sends and receives that have not ended, of hidden channels too.
  [[nodiscard]] std::size_t live() const noexcept { return pools_.live(); }
  /// Of all channels that were used, but the hidden ones.
  [[nodiscard]] std::vector<ChannelEnd> ends() const;
  [[nodiscard]] std::vector<ChannelWait> waits() const;
  /// An end of this process, whoever of the job has the other; or that joined `rank`. Null if it is not open.
  [[nodiscard]] ChannelEndpoint* open_end(ChannelId id, unsigned side, std::int32_t rank) const noexcept;

 private:
  using SettledEnds = IntrusiveList<ChannelEndpoint, &ChannelEndpoint::closed_hook>;

  /// Ends that have settled.
  unsigned poll() noexcept override;
  /// Memory of theirs that is still mapped here is nobody else's, and slots for their messages are of no use.
  void run_deferred() noexcept override;
  /// The side of channel ends of another rank.
  [[nodiscard]] unsigned side_of(int rank) const noexcept {
    if (joined_rank::is_one(rank)) return joined_rank::side_of(rank);
    return rank < own_rank_ ? 0 : 1;
  }
  static void on_control(void* table, port::AmMessage& message) noexcept;
  void take_control(const ChannelControl& control) noexcept;
  void on_last_word(const ChannelControl& control) noexcept;
  static void on_record(void* table, const port::LinkRecord& record) noexcept;
  void on_control_record(const port::LinkRecord& record) noexcept;
  /// The end that a record is for; made, closed, if it was not opened yet or is closed.
  ChannelEndpoint& end_for(const LinkMessage& message, int rank);
  ChannelEndpoint& make_end(Peer& peer, ChannelId id, unsigned side, Path forced);
  ChannelEndpoint* end_of_control(const ChannelControl& control);
  void no_end_for(Peer& peer, std::uint32_t channel) noexcept;
  void drop_unread_of(std::int32_t rank) noexcept;
  void check_opened(const ChannelControl& control) noexcept;

  Engine& engine_;
  const int own_rank_;
  ChannelTraffic traffic_;
  std::uint64_t last_key_ = 0;
  ChannelEndpoint* last_end_ = nullptr;  ///< For that key: messages of one channel come in bursts.
  ChannelPools pools_;
  ControlSender controls_;
  const std::shared_ptr<MappingTable> mappings_;         // outlives whatever is mapped
  Mover& mover_;                                         // made first: its last copies lie in the records
  const std::shared_ptr<StagePool> stages_;              // outlives the records, which lend buffers
  std::unordered_map<std::int32_t, ChannelPeer> peers_;  ///< By rank.
  SettledEnds settled_;                                  ///< Of `endpoints_`, which goes first.
  std::unordered_map<std::uint64_t, std::unique_ptr<ChannelEndpoint>> endpoints_;
  std::unordered_map<std::uint64_t, ChannelEndpoint*> open_ends_;  ///< Those of `endpoints_`, by open_key.
  AnnouncedEnds announced_;
  StallReport stall_;
};

}  // namespace brant
