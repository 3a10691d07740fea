#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "brant/ops/channel.h"
#include "core/event_pool.h"
#include "ops/channel/link_pump.h"
#include "ops/channel/stream_kernels.h"

namespace brant {

/// The stream-triggered half of a channel's end: kernels on the user's streams move the bytes and agree with the
/// kernels of the other end through device memory that both have mapped. The CPU only makes the two ends known to each
/// other, before the first transfer, and tells where allocations are mapped, before the first that uses one.
class StreamLane final : private Poller, private PeerOp {
 public:
  StreamLane(ChannelEndpoint& endpoint, Engine& engine, Peer& peer, LinkPump& pump) noexcept;
  ~StreamLane();
  StreamLane(const StreamLane&) = delete;
  StreamLane& operator=(const StreamLane&) = delete;

  /// Makes this end's mailbox known to the other. Once. in_progress, not_supported, no_memory.
  Status open(const StreamKernels& kernels, std::chrono::nanoseconds patience, Op& op) noexcept;
  /// The other end's mailbox: what `open` waits for.
  void connect(const port::ExportRecord& mailbox) noexcept;
  /// Memory of this kind, and enough of it.
  static bool can_be_mailbox(const port::ExportRecord& record, MemoryKind kind) noexcept;
  [[nodiscard]] bool opening() const noexcept { return opening_.observed(); }
  [[nodiscard]] bool connected() const noexcept { return ends_.peer != nullptr; }
  /// Where the other end has its landings.
  void on_base(const LinkMessage& message) noexcept;
  /// The other end cannot map an allocation of this one. If that is still in use, large messages would be waited for in
  /// vain.
  void on_unmapped(const LinkMessage& message) noexcept;
  /// The other end sends and receives no more: what waits for it gives up, what has come can still be received.
  void give_up(Status why) noexcept;
  /// Ends everything, at both ends.
  void close() noexcept;

  Status send(ConstBuffer source, const OnStream& on) noexcept;
  Status recv(Buffer landing, const OnStream& on) noexcept;
  Status recv_start(Buffer landing, port::Stream* stream) noexcept;
  Status recv_finish(const OnStream& on) noexcept;
  /// ok, or why nothing goes any more.
  [[nodiscard]] Status state() const noexcept;

 private:
  /// Somebody waits for the end of a transfer.
  struct Notice final : OpOwner {
    ListHook<Notice> hook;
    port::Event* event = nullptr;
    bool used = false;
  };

  Status make_memory(std::chrono::nanoseconds patience) noexcept;
  void tell_mailbox() noexcept;
  void map_mailbox() noexcept;
  void refuse_peer() noexcept;
  void note_kernels(bool may_run) noexcept;
  void abandon(Status why) noexcept;
  Result<stream_steps::Receive> describe(Buffer landing) noexcept;
  Result<std::uint64_t> base_of(std::uint64_t buffer_id, const void* place) noexcept;
  Result<Notice*> take_notice(const OnStream& on) noexcept;
  [[nodiscard]] StreamControl::Report* report_of(const Notice* notice) noexcept;
  /// The kernel was launched, or not.
  Status launched(Status status, Notice* notice, const OnStream& on) noexcept;
  void end(Notice& notice, OpResult result) noexcept;
  unsigned poll() noexcept override;
  [[nodiscard]] bool idle() const noexcept { return noticed_.empty() && told_ && !theirs_; }

  ChannelEndpoint& endpoint_;
  Engine& engine_;
  Peer& peer_;
  LinkPump& pump_;
  const StreamKernels* kernels_ = nullptr;
  StreamKernels::Ends ends_;
  port::Stream* stream_ = nullptr;  ///< For what the CPU writes into the mailbox.
  OpOwner opening_;
  port::ExportRecord mailbox_;
  bool told_ = true;                          ///< The mailbox's record has left.
  std::optional<port::ExportRecord> theirs_;  ///< The other end's, until it is mapped.
  MappingLease mapped_;                       ///< Of that one.
  /// Of allocations of the other end, by number: kernels of this end may write there as long as there are any.
  std::array<MappingLease, StreamMailbox::kBases> mapped_bases_;
  bool kernels_may_run_ = false;
  Status fault_ = Status::ok;
  struct Base {
    std::uint64_t buffer_id = 0;
    const void* place = nullptr;
  };
  std::vector<Base> bases_;  ///< Allocations of this end whose place the other end was told, by number.
  EventPool events_;
  std::array<Notice, StreamControl::kReports> notices_;
  IntrusiveList<Notice, &Notice::hook> noticed_;
};

}  // namespace brant
