#pragma once

#include "brant/ops/stream_channel.h"
#include "ops/mapping/table.h"
#include "ops/stream/bases.h"
#include "ops/stream/meeting.h"
#include "ops/stream/memory.h"
#include "ops/stream/notices.h"
#include "ops/stream/wait.h"

namespace brant {

class StreamTable;

/// One end of a StreamChannel: kernels on the user's streams move the bytes and agree with those of the other end. It
/// owns the parts that the CPU has in that, which know each other by way of it. Once closed it is the table's, until
/// nobody uses its memory any more.
class StreamEnd final : private Poller, private PeerOp {
 public:
  StreamEnd(StreamTable& table, Peer& peer, ChannelId id, unsigned side, std::uint64_t opening,
            const StreamChannelOptions& options) noexcept;
  ~StreamEnd();
  StreamEnd(const StreamEnd&) = delete;
  StreamEnd& operator=(const StreamEnd&) = delete;

  [[nodiscard]] StreamTable& table() noexcept { return table_; }
  [[nodiscard]] Engine& engine() const noexcept { return engine_; }
  [[nodiscard]] Peer& peer() const noexcept { return peer_; }
  [[nodiscard]] ChannelId id() const noexcept { return id_; }
  [[nodiscard]] unsigned side() const noexcept { return side_; }
  [[nodiscard]] std::uint64_t opening() const noexcept { return opening_; }

  // See StreamChannel.
  Status prepare(Op& op) noexcept;
  [[nodiscard]] Status state() const noexcept;
  /// ok: transfers may be queued. Else why not, which the log says where that is the program's fault.
  Status ready() const noexcept;
  Status send(ConstBuffer source, const OnStream& on) noexcept;
  Status recv(Buffer landing, const OnStream& on) noexcept;
  Status recv_start(Buffer landing, port::Stream* stream) noexcept;
  Status recv_finish(const OnStream& on) noexcept;

  // What the other end says.
  void on_offer(const StreamOffer& offer) noexcept;
  void on_message(const StreamMessage& message) noexcept;
  /// Whether it can still meet one that is told of now; if not, its answer is for the table to keep.
  [[nodiscard]] bool meets() const noexcept { return memory_.made() && !meeting_.met(); }
  [[nodiscard]] bool has_failed() const noexcept { return fault_ != Status::ok; }
  /// `prepare` waits for the other end.
  [[nodiscard]] bool waits() const noexcept { return waiting_.waits(); }

  // Its end.
  void close() noexcept;
  [[nodiscard]] bool closed() const noexcept { return closed_; }
  /// Whoever waited for transfers of a closed end knows what became of them.
  [[nodiscard]] bool quiet() const noexcept { return notices_.empty(); }
  /// All that the device had to do for it is done.
  void let_go() noexcept;
  /// Nobody uses its memory: it may be freed.
  [[nodiscard]] bool unused() const noexcept {
    return closed_ && quiet() && meeting_.other() == 0 && (!meeting_.lent() || peer_.lost);
  }

  // For its parts.
  [[nodiscard]] StreamMeeting& meeting() noexcept { return meeting_; }
  [[nodiscard]] StreamMemory& memory() noexcept { return memory_; }
  [[nodiscard]] PeerMappings& mappings() noexcept { return *mappings_; }
  [[nodiscard]] StreamMessage message(StreamMessage::Kind kind, std::uint64_t meets = 0) const noexcept;
  /// Its loss would leave the other end waiting, so running out of memory gives the peer up.
  void post(const StreamMessage& message) noexcept;
  void poll_later() noexcept { engine_.pollers().attach(*this); }
  void on_met() noexcept;
  /// Nothing goes any more at this end: what waits gives up, and all that comes is refused.
  void abandon(Status why) noexcept;
  /// The same after they had met: the other end hears that it waits in vain.
  void fail(Status why) noexcept;

 private:
  [[nodiscard]] const char* obstacle() const noexcept;
  Status begin() noexcept;
  void give_up(Status why) noexcept;
  void note_kernels(bool may_run) noexcept;
  [[nodiscard]] StreamKernels::Ends ends() const noexcept {
    return {memory_.mailbox(), meeting_.mailbox(), memory_.control()};
  }
  /// `launch` gets where the kernel reports.
  template <typename Launch>
  Status queue(const OnStream& on, Launch&& launch) noexcept;
  unsigned poll() noexcept override;

  StreamTable& table_;
  Engine& engine_;
  Peer& peer_;
  const ChannelId id_;
  const unsigned side_;
  const std::uint64_t opening_;
  const std::chrono::nanoseconds patience_;
  PeerMappings* mappings_ = nullptr;        ///< From `prepare` on.
  const StreamKernels* kernels_ = nullptr;  ///< Likewise.
  StreamWait waiting_;
  StreamMemory memory_;
  StreamMeeting meeting_;
  StreamBases bases_;
  StreamNotices notices_;
  bool kernels_may_run_ = false;
  bool other_closed_ = false;  ///< After they had met.
  bool closed_ = false;
  Status fault_ = Status::ok;
};

}  // namespace brant
