#pragma once

#include <cstdint>
#include <utility>

#include "brant/base/api.h"
#include "brant/base/buffer.h"
#include "brant/base/ids.h"
#include "brant/base/result.h"
#include "brant/base/shape.h"
#include "brant/core/operation.h"
#include "brant/core/path.h"

namespace brant {

class ChannelEndpoint;
class Runtime;

struct ChannelOptions {
  /// Forces the path of every transfer of this end, for measuring; `ucx` at both ends or at neither. `automatic`
  /// follows BRANT_PATH, then brant's own choice (docs/how-it-works/paths.md).
  Path path = Path::automatic;
};

/// What went over one end of a channel since it was opened, or longer.
struct ChannelCounts {
  std::uint64_t sent = 0;       ///< Messages handed to the network.
  std::uint64_t received = 0;   ///< Messages landed.
  std::uint64_t truncated = 0;  ///< Sent messages that were longer than the peer's receive buffer.
  std::uint64_t waiting = 0;    ///< Sends held back now because the peer is behind.
};

/// One end of an ordered two-sided connection between two named endpoints: message n sent meets receive n posted, from
/// any kind of memory to any kind. Between hosts no message of metadata travels on the fast path, since both sides know
/// the tag; on one host the two ends agree in records of shared memory how each message goes. Between two ends of one
/// process message and receive meet there, and the bytes are moved once.
///
/// An end belongs to the worker's thread of its runtime and is movable. Closing (or destroying) it completes pending
/// receives with `canceled`; sends that the network has go on, and report as before. No source of a send that nobody
/// observes any more (`Op::detach`, an Operation destroyed while pending) is read after `close`: one that no receive
/// has met ends, and its receive gets `canceled`; a small message on its way is kept; and `close` waits for what a
/// device or the peer is reading. A peer that makes no progress for 5 s ends that wait, for all channels to it
/// together; the log then names the source it may still read. When the program of the peer has ended (its Runtime was
/// destroyed) receives get what it has sent; those of more, and sends that nobody took, end with `peer_lost`.
///
/// The same id may be opened again with the same peer, also while its other end stays open: the numbering goes on, and
/// what was not received yet can be. What one end sent in its n-th opening is dropped once it and the other end's n-th
/// opening are closed. Once an id is closed it may be opened with another peer: each pair has numbers and messages of
/// its own. Closed ends leave some 50 bytes each while their peer lives. With peers that have joined (Runtime::join)
/// the same id may be open at one time, with each of them.
///
/// A message that one end cannot send or take after both count on it ends at both: the send with its reason or, with
/// `delivered`, `peer_rejected`, the receive likewise; the next message arrives (decision 19).
///
/// Back-pressure: at most 256 messages and 64 MiB travel ahead of the receiver (beside a larger message little else
/// does); later sends stay pending. The work that produces a buffer in GPU memory must be finished before `send`, since
/// the network is not ordered with streams.
///
/// Source: Channel API, section 3.2 of "Accelerating communication for parallel programming models on GPU systems"
/// (2022).
class BRANT_API Channel {
 public:
  Channel() noexcept = default;
  Channel(Channel&& other) noexcept : endpoint_(std::exchange(other.endpoint_, nullptr)) {}
  Channel& operator=(Channel&& other) noexcept {
    if (this != &other) {
      close();
      endpoint_ = std::exchange(other.endpoint_, nullptr);
    }
    return *this;
  }
  ~Channel() { close(); }

  /// Opens this process's end of channel `id` with `peer`. Does not wait for the peer to open its end. With `peer` =
  /// own rank the first open is one end and the second the other. Throws Error: invalid_argument (id above
  /// kChannelIdMax, unknown rank, id in use), peer_lost.
  static Channel open(Runtime& runtime, Rank peer, ChannelId id, const ChannelOptions& options = {});

  /// The same for the ids above kChannelIdMax: for the layers of brant above this one. Between two ends of one process
  /// `side` says which end this is, whoever comes first.
  static Channel open_reserved(Runtime& runtime, Rank peer, ChannelId id, const ChannelOptions& options, unsigned side);

  void close() noexcept;
  [[nodiscard]] bool is_open() const noexcept { return endpoint_ != nullptr; }
  [[nodiscard]] Rank peer() const noexcept;
  [[nodiscard]] ChannelId id() const noexcept;
  /// Which end of the two this is: 0 or 1. The other end has the other number.
  [[nodiscard]] unsigned side() const noexcept;
  [[nodiscard]] ChannelCounts counts() const noexcept;
  /// The path that a message from memory of Runtime::allocate takes, in an allocation of 16 KB or more, of this kind
  /// (not `detect`) and size. This is what can be foreseen: the receive may be in memory that leads to another path,
  /// and then the message is counted there. not_supported if a forced path cannot carry it.
  [[nodiscard]] Result<Path> path_of(MemoryKind kind, std::size_t bytes) const noexcept;
  /// The same of a message from this very memory, which the peer may be unable to map (of malloc, a std::vector): then
  /// large host messages go another way. Also returns wrong_kind and invalid_argument, as a send does. It costs a look
  /// at what the memory is.
  [[nodiscard]] Result<Path> path_of(ConstBuffer source) const noexcept;
  /// The same of the bytes of a shape that is laid on it.
  [[nodiscard]] Result<Path> path_of(ConstBuffer source, const Shape& shape) const noexcept;

  /// Sends the next message. `op.source_free`: the source may be reused; `op.delivered`: it is in the receiver's buffer
  /// (costs an acknowledgement by the peer). A message longer than its receive completes with `truncated`; a small one
  /// may have completed `source_free` before that is known. Then it is logged and counted, and `delivered` is told. So
  /// any send that is awaited only until `source_free` may say ok, whatever becomes of the message: await `delivered`
  /// to know that it was received whole.
  /// A small message does not wait for its receive, a larger one may. Small are messages of at most 8 KiB, but only
  /// those below 2 KiB in host memory that a peer of the same host can map (`Runtime::allocate`, 16 KiB or more): from
  /// 2 KiB on the peer copies those from where they are (decision 14). Host memory is left at once, device memory
  /// between processes of one host after 20 us (64 such messages are kept; decision 16). Between two ends of one
  /// process all messages of at most 8 KiB are small. Errors: wrong_kind, invalid_argument (see `Buffer`; `op` is
  /// pending), not_supported (forced path), peer_lost, limit_reached (65536 sends and receives of this process are
  /// under way: progress until some have ended), no_memory (nothing was started). No allocation in steady state.
  Status post_send(ConstBuffer source, Op& op) noexcept;

  /// Receives the next message, of at most `landing.bytes`; `op.result.bytes` is its size. Only `op.delivered` applies.
  /// A longer message completes with `truncated`; it is consumed, and how much of the landing was written is undefined.
  /// Returns the same errors as a send. A message that had come, and that there was no memory for, is lost: its receive
  /// gets no_memory with the size of the message in `op.result.bytes`, and the next one is for the next message.
  Status post_recv(Buffer landing, Op& op) noexcept;

  /// The same of bytes that do not lie in one run: those of `shape`, laid on the buffer, in its order, are the message,
  /// and `shape.bytes()` its size. The two ends may have any two shapes, as long as the landing's has as many bytes as
  /// the message, or more: a shorter message fills the first of them, a longer one is truncated. The shape is copied;
  /// the runs of an indexed one stay the caller's until the operation has ended (of a send that nobody observes, until
  /// the channel is closed). A shape that is one run costs what the buffer alone costs. Where runs of a landing
  /// overlap, each byte of them gets one of those that are meant for it, unspecified which; bytes between the runs are
  /// never written. How it goes: a small message of host memory is packed into its record; a larger one piece by piece
  /// over the link, or by way of a pinned buffer of its size over the network; a kernel packs device memory, straight
  /// into a landing that is one run and mapped, else into such a buffer; a receive unpacks in the same ways
  /// (docs/decisions/0039-messages-with-shapes.md).
  /// Errors besides: invalid_argument (the shape reaches beyond the buffer), no_memory (no pinned buffer is left),
  /// not_supported (the path `courier` is forced).
  Status post_send(ConstBuffer source, const Shape& shape, Op& op) noexcept;
  Status post_recv(Buffer landing, const Shape& shape, Op& op) noexcept;

  /// The same as objects to await.
  Operation send(ConstBuffer source, Moment until = Moment::source_free) noexcept {
    return Operation(until, [&](Op& op) noexcept { return post_send(source, op); });
  }
  Operation recv(Buffer landing) noexcept {
    return Operation(Moment::delivered, [&](Op& op) noexcept { return post_recv(landing, op); });
  }
  Operation send(ConstBuffer source, const Shape& shape, Moment until = Moment::source_free) noexcept {
    return Operation(until, [&](Op& op) noexcept { return post_send(source, shape, op); });
  }
  Operation recv(Buffer landing, const Shape& shape) noexcept {
    return Operation(Moment::delivered, [&](Op& op) noexcept { return post_recv(landing, shape, op); });
  }

 private:
  explicit Channel(ChannelEndpoint* endpoint) noexcept : endpoint_(endpoint) {}

  ChannelEndpoint* endpoint_ = nullptr;
};

}  // namespace brant
