#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ops/stream/end.h"

namespace brant {

/// The ends of stream channels of one runtime, and what they share.
class StreamTable final : public Service, private DeferredWork {
 public:
  /// Mailboxes that peers have told of ends which are not prepared here.
  static constexpr std::size_t kEarlyMax = 1024;
  /// Closed ends whose memory the device or the other end may still use.
  static constexpr std::size_t kClosedMax = 256;

  explicit StreamTable(Engine& engine);
  ~StreamTable() override;

  [[nodiscard]] Engine& engine() const noexcept { return engine_; }
  /// Loaded on first use: ask for them before kernels run that end late.
  Result<const StreamKernels*> kernels() noexcept;
  /// Throws bad_alloc.
  PeerMappings& mappings(Peer& peer) { return mappings_->with(peer); }

  /// Throws as StreamChannel::open.
  StreamEnd& open(Rank peer, ChannelId id, const StreamChannelOptions& options);
  void close(StreamEnd& end) noexcept;
  /// Something has changed at an end that is closed: what nobody uses any more is freed later, outside progress.
  void look_at_closed() noexcept { engine_.deferrals().defer(*this); }
  /// What the other end has told before this one was prepared. Without opening: nothing.
  [[nodiscard]] StreamOffer take_early(const StreamEnd& end) noexcept;
  void post(Peer& peer, const StreamMessage& message) noexcept;

  /// Ends that are open.
  [[nodiscard]] std::size_t open_ends() const noexcept { return open_.size(); }
  /// Ends that are closed and still in use by the device or the other end.
  [[nodiscard]] std::size_t closed_ends() const noexcept { return ends_.size() - open_.size(); }

  void peer_ended(Peer& peer) noexcept override;
  bool forget(Peer& peer) noexcept override;
  bool stalled(std::chrono::nanoseconds idle, bool for_ever) noexcept override;

 private:
  using Key = std::uint64_t;
  /// A mailbox that is told of before the end here is prepared. Goes with its peer.
  struct Early final : PeerOp {
    Early(StreamTable& table_in, Peer& peer_in, Key key_in, const StreamOffer& offer_in) noexcept;
    ~Early() { peer.remove_outstanding(*this); }
    Early(const Early&) = delete;
    Early& operator=(const Early&) = delete;

    StreamTable& table;
    Peer& peer;
    const Key key;
    StreamOffer offer;
  };

  static void on_record(void* table, const port::LinkRecord& record) noexcept;
  void take_message(Peer& peer, const StreamMessage& message) noexcept;
  void take_offer(Peer& peer, const StreamMessage& message, const port::ExportRecord& record) noexcept;
  void refuse(Peer& peer, const StreamMessage& message) noexcept;
  void release(Peer& peer, const StreamMessage& message, std::uint64_t opening) noexcept;
  [[nodiscard]] unsigned side_of(const Peer& peer) const noexcept;
  [[nodiscard]] StreamEnd* open_end(Key key) const noexcept;
  [[nodiscard]] StreamEnd* end_of(std::uint64_t opening) const noexcept;
  void run_deferred() noexcept override;
  void let_closed_go() noexcept;

  Engine& engine_;
  const std::shared_ptr<MappingTable> mappings_;  // outlives whatever is mapped
  std::optional<StreamKernels> kernels_;
  std::uint64_t last_opening_ = 0;
  std::vector<std::unique_ptr<StreamEnd>> ends_;  ///< Closed ones that are still in use, too.
  std::unordered_map<Key, StreamEnd*> open_;
  std::unordered_map<Key, Early> early_;
  bool early_told_ = false;
};

}  // namespace brant
