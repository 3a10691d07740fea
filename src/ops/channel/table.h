#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/object_pool.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/source_patience.h"
#include "ops/channel/traffic.h"
#include "ops/mapping/table.h"
#include "ops/mover/mover.h"

namespace brant {

/// All channel ends of one runtime, and what they share: records, stage buffers, the control message handler.
class ChannelTable final : public Service, private Poller, private DeferredWork {
 public:
  static constexpr std::size_t kTransfersMax = 65536;

  explicit ChannelTable(Engine& engine);
  ~ChannelTable() override {
    engine_.detach(static_cast<Poller&>(*this));
    engine_.take_back(static_cast<DeferredWork&>(*this));
  }

  [[nodiscard]] Engine& engine() noexcept { return engine_; }
  [[nodiscard]] const Engine& engine() const noexcept { return engine_; }
  [[nodiscard]] Mover& mover() noexcept { return mover_; }
  [[nodiscard]] StagePool& stages() noexcept { return *stages_; }
  [[nodiscard]] ObjectPool<TransferMove>& moves() noexcept { return moves_; }
  /// Loaded on first use: ask for them before kernels run that end late.
  Result<const StreamKernels*> stream_kernels() noexcept;
  /// A closed end's, which kernels of the other end may still write to.
  void retire(std::unique_ptr<StreamLane> lane) { retired_lanes_.push_back(std::move(lane)); }
  [[nodiscard]] SourcePatience& source_patience() noexcept { return source_patience_; }
  [[nodiscard]] ObjectPool<Transfer>& transfers() noexcept { return transfers_; }
  [[nodiscard]] ObjectPool<SmallReceive>& small_receives() noexcept { return small_receives_; }
  [[nodiscard]] ObjectPool<Arrival>& arrivals() noexcept { return arrivals_; }
  /// What waits for room on the link to a peer, which must have one. Throws only if memory is exhausted.
  LinkPump& pump(Peer& peer);

  /// Throws invalid_argument, peer_lost. Within a process `side` is the caller's choice; without one whoever comes
  /// first has side 0. Else the ranks decide.
  ChannelEndpoint& open(Rank peer, ChannelId id, Path forced, std::optional<unsigned> own_side = std::nullopt);

  void send_control(Peer& peer, const ChannelControl& control) noexcept;

  void note_closed(const ChannelEndpoint& endpoint) noexcept { open_ends_.erase(key(endpoint.id(), endpoint.side())); }
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
  [[nodiscard]] std::size_t links_in_use() const noexcept { return pumps_.size(); }

  // The ends of programs (last_words.cc), and waits in which nothing happens (stall.cc).
  unsigned part_from(Peer& peer) noexcept override;
  void peer_ended(Peer& peer) noexcept override;
  bool stalled(std::chrono::nanoseconds idle, bool for_ever) noexcept override;

  // What is under way, for whoever wants to know whether a job can go on (traffic.cc).
  [[nodiscard]] ChannelTraffic& traffic() noexcept { return traffic_; }
  [[nodiscard]] const ChannelTraffic& traffic() const noexcept { return traffic_; }
  /// Sends and receives that have not ended, of hidden channels too.
  [[nodiscard]] std::size_t live() const noexcept { return transfers_.lent() + small_receives_.lent(); }
  /// No record is left for another one: said once.
  void tell_transfers_limit() noexcept;
  /// Of all channels that were used, but the hidden ones.
  [[nodiscard]] std::vector<ChannelEnd> ends() const;
  [[nodiscard]] std::vector<ChannelWait> waits() const;
  /// This end is open here.
  [[nodiscard]] bool is_open(ChannelId id, unsigned side) const noexcept;

 private:
  struct ControlSend : port::WireOp {
    ChannelTable* table = nullptr;
    Peer* peer = nullptr;
    ChannelControl control;
    ListHook<ControlSend> hook;
  };

  /// Of the program of a peer that has ended.
  struct LastWords {
    std::uint32_t heard = 0;
    Peer* ended = nullptr;  ///< Once the farewell has come too.
  };

  struct AccountSend : port::WireOp {
    bool under_way = false;
  };

  /// What is known of an end that was announced.
  struct Announced {
    std::int32_t rank = -1;
    bool linked = false;
  };

  /// What is left of the ends with one peer that were closed, while that lives.
  struct ClosedEnds : PeerOp {
    std::unordered_map<std::uint64_t, ClosedEnd> by_key;
  };

  using ControlSends = IntrusiveList<ControlSend, &ControlSend::hook>;
  using SettledEnds = IntrusiveList<ChannelEndpoint, &ChannelEndpoint::closed_hook>;

  static std::uint64_t key(ChannelId id, unsigned side) noexcept { return std::uint64_t{id.value} << 1 | side; }
  /// An id has an end for each peer that it was used with; one of them may be open. `rank`: of the peer.
  static std::uint64_t end_key(ChannelId id, unsigned side, std::int32_t rank) noexcept {
    return key(id, side) | static_cast<std::uint64_t>(rank) << 33;  // a key has 33 bits
  }
  Status post(ControlSend& send) noexcept;
  void send_later(ControlSend& send) noexcept;
  unsigned send_refused() noexcept;
  /// Control messages that the network had no room for, and ends that have settled.
  unsigned poll() noexcept override;
  unsigned forget_settled() noexcept;
  /// Memory of theirs that is still mapped here is nobody else's, and slots for their messages are of no use.
  void run_deferred() noexcept override;
  /// The side of channel ends of another rank.
  [[nodiscard]] unsigned side_of(int rank) const noexcept { return rank < own_rank_ ? 0 : 1; }
  static void on_control(void* table, port::AmMessage& message) noexcept;
  void take_control(const ChannelControl& control) noexcept;
  static void on_record(void* table, const port::LinkRecord& record) noexcept;
  [[nodiscard]] ChannelEndpoint* open_end(ChannelId id, unsigned side) const noexcept;
  /// The end that a record is for; made, closed, if it was not opened yet or is closed.
  ChannelEndpoint& end_for(const LinkMessage& message, int rank);
  ChannelEndpoint& make_end(Peer& peer, ChannelId id, unsigned side, Path forced);
  void remember(ChannelEndpoint& endpoint);
  [[nodiscard]] const ClosedEnd* remembered(ChannelId id, unsigned side, std::int32_t rank) const noexcept;
  ChannelEndpoint* end_of_control(const ChannelControl& control);
  void refuse_unlike(ChannelEndpoint& endpoint, const Announced& other) noexcept;
  void check_opened(const ChannelControl& control) noexcept;
  void forget_announced(const ChannelControl& control) noexcept;
  void on_last_word(const ChannelControl& control) noexcept;
  void end_all_of(const Peer& peer) noexcept;
  [[nodiscard]] bool has_all_last_words(const Peer& peer) const noexcept;
  /// If the program of the other end has ended, and has said how much it sent.
  void end_if_known(ChannelEndpoint& endpoint) noexcept;
  static void on_account(void* table, port::AmMessage& message) noexcept;
  [[nodiscard]] bool waits_only_for(const Peer& peer) const;
  [[nodiscard]] std::vector<ChannelEnd> ends_with(const Peer& peer) const;
  void send_account(Peer& peer, bool is_answer);
  void judge(Peer& peer, std::vector<ChannelEnd> theirs);
  [[nodiscard]] std::string unopened_text(const std::vector<ChannelWait>& waits) const;

  Engine& engine_;
  const int own_rank_;
  ChannelTraffic traffic_;
  bool transfers_limit_told_ = false;
  std::uint64_t last_key_ = 0;
  ChannelEndpoint* last_end_ = nullptr;  ///< For that key: messages of one channel come in bursts.
  ObjectPool<Transfer> transfers_{kTransfersMax};
  ObjectPool<TransferMove> moves_{kTransfersMax};
  ObjectPool<SmallReceive> small_receives_{kTransfersMax};
  ObjectPool<Arrival> arrivals_{LinkArrivals::kMax};
  ObjectPool<ControlSend> control_sends_{std::numeric_limits<std::size_t>::max()};  // none may be missing
  std::unordered_map<std::int32_t, ControlSends> refused_controls_;                 ///< By rank; oldest first.
  const std::shared_ptr<MappingTable> mappings_;                                    // outlives whatever is mapped
  Mover& mover_;                                                       // made first: its last copies lie in the records
  const std::shared_ptr<StagePool> stages_;                            // outlives the records, which lend buffers
  std::unordered_map<std::int32_t, std::unique_ptr<LinkPump>> pumps_;  ///< By rank.
  std::optional<StreamKernels> stream_kernels_;
  std::vector<std::unique_ptr<StreamLane>> retired_lanes_;
  std::unordered_map<std::int32_t, ClosedEnds> closed_ends_;  ///< By rank.
  SettledEnds settled_;                                       ///< Of `endpoints_`, which goes first.
  std::unordered_map<std::uint64_t, std::unique_ptr<ChannelEndpoint>> endpoints_;
  std::unordered_map<std::uint64_t, ChannelEndpoint*> open_ends_;  ///< Those of `endpoints_`, whatever the peer.
  std::unordered_map<std::uint64_t, Announced> announced_;         ///< Ends of others, before or after ours was opened.
  std::unordered_map<std::uint64_t, std::uint64_t> sent_there_;    ///< By ends of programs that have ended.
  std::unordered_map<std::int32_t, LastWords> last_words_;         ///< By rank.
  AccountSend account_;
  SourcePatience source_patience_;
  bool deadlock_told_ = false;
};

}  // namespace brant
