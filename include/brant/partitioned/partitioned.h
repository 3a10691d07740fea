#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "brant/base/api.h"
#include "brant/base/buffer.h"
#include "brant/core/operation.h"
#include "brant/device/notify.cuh"
#include "brant/notify/bell.h"
#include "brant/ops/channel.h"

namespace brant {

class Notifier;
class Runtime;

/// Which bytes of a message a part is. Parts are as long as each other, to 64 bytes, but for the last ones, which may
/// be shorter or empty.
struct PartRange {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};
[[nodiscard]] BRANT_API PartRange part_range(std::size_t bytes, std::uint32_t parts, std::uint32_t part) noexcept;

struct PartitionedOptions {
  std::uint32_t parts = 1;  ///< Of each message; the same at both ends. Up to kPartsMax.
  /// Neighbours that are ready go together, and wait for one another until they are so many bytes: small messages cost
  /// more than they save. 0: each part goes at once, by itself.
  std::size_t bytes_min = std::size_t{64} << 10;

  static constexpr std::uint32_t kPartsMax = 4096;
};

/// The sending end of messages in parts, each of which leaves when it is ready, while a kernel still computes the rest:
///
///     PartitionedSend faces(runtime, Channel::open(runtime, peer, 7), {.parts = 8}, &notifier);
///     Operation sent = faces.send(face, step);       // nothing leaves yet
///     kernel.launch(shape, stream, faces.device(p), step, ...);  // rings part p with the epoch `step`
///     (co_await sent).or_throw("the face was not sent");
///
/// Part p is ready when its bell has reached the epoch of the message, or the CPU says so (`ready`). It takes a channel
/// for itself, whose other end is a PartitionedReceive. Movable, of the worker's thread, and goes before its Notifier
/// and Runtime. A message costs one message of the channel for each run of parts, and a head of 40 bytes before it.
class BRANT_API PartitionedSend {
 public:
  PartitionedSend() noexcept;
  /// Throws Error: invalid_argument (a closed channel; no parts, or more than kPartsMax), and, with a notifier, what
  /// Notifier::make throws.
  PartitionedSend(Runtime& runtime, Channel channel, const PartitionedOptions& options, Notifier* notifier = nullptr);
  PartitionedSend(PartitionedSend&&) noexcept;
  PartitionedSend& operator=(PartitionedSend&&) noexcept;
  ~PartitionedSend();

  /// The bell of a part, for kernels: `notify::ring`, or `notify::arrive` where several blocks make a part. One without
  /// a word where there is no notifier or no such part.
  [[nodiscard]] notify::DeviceBell device(std::uint32_t part) const noexcept;
  /// A stream rings the part: see Bell::enqueue_ring.
  Status enqueue_ready(StreamHandle stream, std::uint32_t part, std::uint64_t epoch) noexcept;

  /// Begins the next message; `source` is read part by part, each of them once it is ready. `epoch`: later than that of
  /// the message before. `op.source_free`, `op.delivered`: of all parts. Errors: timed_out (a part was not ready within
  /// `patience`; the log names it, and its bell), canceled (closed, withdrawn), invalid_argument (closed; the message
  /// before has not ended; an earlier epoch; no such memory), and what Channel::post_send says. When it ends with an
  /// error so does the receive, with peer_rejected; the next message may follow.
  Status post_send(ConstBuffer source, std::uint64_t epoch, Op& op,
                   std::chrono::nanoseconds patience = Bell::kNotifiersPatience) noexcept;
  Operation send(ConstBuffer source, std::uint64_t epoch, Moment until = Moment::source_free) noexcept {
    return Operation(until, [&](Op& op) noexcept { return post_send(source, epoch, op); });
  }
  /// The CPU says that a part of the message under way is ready; a second time is nothing. invalid_argument: there is
  /// no such part or message. What the network says is told by the message.
  Status ready(std::uint32_t part) noexcept;

  /// Messages of the channel that parts have gone in, since it was made.
  [[nodiscard]] std::uint64_t runs_sent() const noexcept;
  [[nodiscard]] bool is_open() const noexcept { return sending_ != nullptr; }
  /// What is under way is canceled, and its receive ends with peer_rejected; see Channel::close.
  void close() noexcept;

 private:
  struct Sending;
  std::unique_ptr<Sending> sending_;
};

/// The receiving end, which tells of each part as it comes:
///
///     PartitionedReceive faces(runtime, Channel::open(runtime, peer, 7), {.parts = 8});
///     Operation all = faces.receive(ghost, step);
///     for (std::uint32_t p = 0; p < 8; ++p) { (co_await faces.when(p)).or_throw("a part"); use(p); }
///     (co_await all).or_throw("the face did not come");
///
/// Movable, of the worker's thread, and goes before its Runtime.
class BRANT_API PartitionedReceive {
 public:
  PartitionedReceive() noexcept;
  /// Throws Error: invalid_argument (a closed channel; no parts, or more than kPartsMax).
  PartitionedReceive(Runtime& runtime, Channel channel, const PartitionedOptions& options);
  PartitionedReceive(PartitionedReceive&&) noexcept;
  PartitionedReceive& operator=(PartitionedReceive&&) noexcept;
  ~PartitionedReceive();

  /// Receives the next message, whose epoch must be this one. `op.delivered`: all of it is there; `bytes`: its size.
  /// Errors: truncated (it is longer than the landing: nothing of it is written), peer_rejected (the sender gave it up,
  /// or it has other parts or another epoch; parts that came are written), peer_lost, canceled (closed;
  /// withdrawn, which closes the channel too, since nothing may be written any more), invalid_argument (closed; the
  /// message before has not ended), and what Channel::post_recv says.
  Status post_receive(Buffer landing, std::uint64_t epoch, Op& op) noexcept;
  Operation receive(Buffer landing, std::uint64_t epoch) noexcept {
    return Operation(Moment::delivered, [&](Op& op) noexcept { return post_receive(landing, epoch, op); });
  }

  /// `op.delivered` when the part of the message under way has come: ok if it has. Ends as the message does if that
  /// ends without it. invalid_argument: no such part, no message yet, or somebody waits for this part already.
  Status post_when(std::uint32_t part, Op& op) noexcept;
  Operation when(std::uint32_t part) noexcept {
    return Operation(Moment::delivered, [&](Op& op) noexcept { return post_when(part, op); });
  }
  /// The part of the last message has come.
  [[nodiscard]] bool arrived(std::uint32_t part) const noexcept;

  [[nodiscard]] bool is_open() const noexcept { return receiving_ != nullptr; }
  /// What waits ends with `canceled`.
  void close() noexcept;

 private:
  struct Receiving;
  std::unique_ptr<Receiving> receiving_;
};

}  // namespace brant
