#pragma once

#include <chrono>
#include <utility>

#include "brant/base/api.h"
#include "brant/base/buffer.h"
#include "brant/base/ids.h"
#include "brant/base/result.h"
#include "brant/core/operation.h"

namespace brant {

class Runtime;
class StreamEnd;
namespace port {
struct Stream;
}

struct StreamChannelOptions {
  /// Bounds every wait for the other end: that of `prepare`, and each wait of a kernel. What it ends reports
  /// `timed_out`. Above 0.
  std::chrono::nanoseconds patience = std::chrono::seconds(60);
};

/// Triggers a transfer by a stream of the device (a `Stream` of brant/device.h, or a CUstream): it begins when
/// the work queued there before has ended, and what is queued behind it waits for its end. Its buffer is in use until
/// the stream has passed it, closed channel or not.
struct OnStream {
  port::Stream* stream = nullptr;
  /// Also tells the CPU: `source_free` of a send, `delivered` of a receive. Leave it out where nobody waits, and while
  /// the stream is being captured. At most 64 are pending.
  Op* op = nullptr;
};

/// One end of an ordered two-sided connection between the GPUs of two processes of one host, whose transfers are
/// triggered by streams. Kernels move the bytes (path `kernel`) and agree with those of the other end through device
/// memory that both have mapped. The CPU takes part in `prepare` and in the first receive into each allocation, and
/// never after that, so that transfers may be captured into a graph and replayed. Where it cannot be had (`prepare`
/// says not_supported), a `Channel` carries the same data: the host starts its transfers. The two have ids apart, and
/// neither meets nor orders the other's messages.
///
///     StreamChannel channel = StreamChannel::open(runtime, other, ChannelId{0});
///     (co_await channel.prepare()).or_throw("the two ends cannot meet on streams");
///     channel.recv_start(ghost, {.stream = stream});   // look at what each returns
///     channel.send(face, {.stream = stream});
///     channel.recv_finish({.stream = stream});
///
/// Send n meets receive n. All transfers of one end must be ordered with each other on the device: one stream, or
/// streams tied by events.
///
/// An end belongs to the worker's thread of its runtime, is movable, and goes before its runtime. It keeps 2 MB of
/// device memory from `prepare` on. After `close` that is given back in a wait that finds nothing to do (while no other
/// stream channel of the process is prepared), in `Runtime::tidy`, or at the end of the runtime, once its kernels have
/// ended and the other end is closed as well. A graph that holds transfers of an end must not be launched after its
/// close.
///
/// Why it is made so: docs/decisions/0011 and 0046.
class BRANT_API StreamChannel {
 public:
  StreamChannel() noexcept = default;
  StreamChannel(StreamChannel&& other) noexcept : end_(std::exchange(other.end_, nullptr)) {}
  StreamChannel& operator=(StreamChannel&& other) noexcept {
    if (this != &other) {
      close();
      end_ = std::exchange(other.end_, nullptr);
    }
    return *this;
  }
  ~StreamChannel() { close(); }

  /// Opens this process's end of stream channel `id` with `peer`. Waits for nobody, and costs a small allocation. The
  /// same id may be used with each peer, and again once it is closed, also while its other end is still open. Throws
  /// Error: invalid_argument (an id above kChannelIdMax, an unknown rank, an id that is open with that peer, no
  /// patience), peer_lost.
  static StreamChannel open(Runtime& runtime, Rank peer, ChannelId id, const StreamChannelOptions& options = {});

  /// Ends everything: kernels that wait give up with `canceled`, and operations on their way end when the stream has
  /// passed them. At the other end what waits for this one ends with `canceled`; what it has sent can still be
  /// received. Never waits for the device.
  void close() noexcept;
  [[nodiscard]] bool is_open() const noexcept { return end_ != nullptr; }
  [[nodiscard]] Rank peer() const noexcept;
  [[nodiscard]] ChannelId id() const noexcept;
  /// ok: transfers can be queued. in_progress: `prepare` has not ended well yet. Else why nothing goes any more, which
  /// all calls return: timed_out, peer_lost, canceled (a transfer waited for an end that is closed), not_supported,
  /// no_memory, limit_reached, device_failed; invalid_argument if this end is closed or was used wrongly. Then close it
  /// and open it anew.
  [[nodiscard]] Status state() const noexcept;

  /// Makes the two ends ready for transfers; both must ask. `op.delivered`: both have mapped the other's memory. Also
  /// if it was prepared before (then ok at once). An end that is closed before that, here or there, may be opened anew,
  /// and the other one still meets it. Cancelling it ends the wait, and it may be asked for again; so may it after
  /// `timed_out`. Errors: not_supported (the two processes are not on one host, or are one; no device with kernels; the
  /// devices cannot map each other's memory; BRANT_PATH forces another path), no_memory, limit_reached (256 closed ends
  /// of this process hold memory, since their other ends are open; at the other process 1024 ids were asked for that it
  /// has not prepared), peer_lost, timed_out (the other end did not come within the patience), invalid_argument (it is
  /// being prepared).
  /// Costs an allocation of device memory and some records of the link.
  Status post_prepare(Op& op) noexcept;
  Operation prepare() noexcept {
    return Operation(Moment::delivered, [&](Op& op) noexcept { return post_prepare(op); });
  }

  /// Sends the next message: `source` lies in device memory of this process, or in its pinned memory. A message of at
  /// most 8 KiB leaves without its receive (16 such are kept by the other end); a larger send waits on the device for
  /// the receive to begin, and holds its stream meanwhile. So where two ends send to each other, both begin their
  /// receives before they send: recv_start, send, recv_finish.
  ///
  /// Returns ok when queued without `op`, in_progress with. Errors: wrong_kind, limit_reached (64 `op`s are pending:
  /// try again after progress; a message above 137 GB), invalid_argument (no stream, not prepared, a pending `op`), and
  /// what `state` says. Cost: one kernel of at most 32 blocks; no allocation, lock or message of the host.
  Status send(ConstBuffer source, const OnStream& on) noexcept;

  /// Receives the next message into device memory of this process. `op.result.bytes` is its size. One that is longer
  /// than the landing reports `truncated` to `op` and leaves the landing as it was.
  ///
  /// The landings of one end lie in at most 64 allocations, best of 2 MB or more (a GPU's driver may refuse to share
  /// smaller ones). The first receive into an allocation needs progress at both ends, later ones need none. So allocate
  /// landings, and use each once, before kernels of the other end wait: a new allocation at the addresses of one that
  /// was freed closes the old mapping, and that waits for all kernels of the device.
  ///
  /// So does the driver where memory of the device, or pinned memory, is freed: beside a transfer that waits, a free
  /// ends when the other end has come, and after the patience at the latest. This process makes no progress meanwhile,
  /// so free before the first receive into an allocation, or when what is under way has ended.
  ///
  /// Returns what `send` does; besides limit_reached for a 65th allocation, not_supported for memory that no other
  /// process can map, and, at both ends and from then on, for an allocation that the other end cannot map. More than 64
  /// receives that have begun and not ended end this end with limit_reached. Cost: one kernel of one block.
  Status recv(Buffer landing, const OnStream& on) noexcept;
  /// The two halves of `recv`, a kernel each: the landing may be written from here on (`on.op` must be null); and it
  /// has been written. A recv_finish without its recv_start ends this end with invalid_argument.
  Status recv_start(Buffer landing, const OnStream& on) noexcept;
  Status recv_finish(const OnStream& on) noexcept;

 private:
  explicit StreamChannel(StreamEnd* end) noexcept : end_(end) {}

  StreamEnd* end_ = nullptr;
};

}  // namespace brant
