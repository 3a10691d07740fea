#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "brant/base/atomic.h"
#include "brant/base/buffer.h"
#include "brant/base/result.h"
#include "brant/base/status.h"

/// The wire: what brant needs of a network. Adapters: wire/ucx (everything), wire/loopback (in process, for tests and
/// for a single rank), wire/faulty (a decorator that breaks things on purpose).
///
/// Thread rule: one thread owns a wire and makes all calls on it. No call blocks, none throws, except where noted.
/// Every post returns `ok` (done: the op is not reported again), `in_progress` (its `on_complete` runs later, exactly
/// once, from `Wire::deliver`, never from inside `progress`), or an error (nothing was started).
namespace brant::port {

/// One operation in flight. The caller owns it; it must stay in place until it completed.
struct WireOp {
  using OnComplete = void (*)(WireOp&) noexcept;

  OnComplete on_complete = nullptr;  ///< Set by the caller before the post.
  WireOp* next = nullptr;            ///< Link of the adapter's list of completed operations.
  void* request = nullptr;           ///< The adapter's own record while the operation is pending.
  Status status = Status::ok;        ///< Valid at completion.
  std::uint64_t bytes = 0;  ///< Bytes received or sent. On `truncated`: the message's full length where known, else 0.
  std::uint64_t tag = 0;    ///< Tag of the message received.
  bool visible = false;     ///< Of a put: its bytes are there, and it needs no flush.
};

/// A first-in-first-out list of completed operations; the link is in the operation, so nothing is allocated.
class WireOpList {
 public:
  void push(WireOp& op) noexcept {
    op.next = nullptr;
    (tail_ != nullptr ? tail_->next : head_) = &op;
    tail_ = &op;
  }
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  WireOp* pop() noexcept {
    WireOp* op = head_;
    if (op != nullptr && (head_ = op->next) == nullptr) tail_ = nullptr;
    return op;
  }

 private:
  WireOp* head_ = nullptr;
  WireOp* tail_ = nullptr;
};

/// A connection to one peer; its contents belong to the adapter.
struct WireEndpoint;

/// An active message that arrived. Small payloads lie in `data`; otherwise `data` is null and the payload waits at the
/// sender until `Wire::am_receive` names where it shall land.
struct AmMessage {
  std::span<const std::byte> header;
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  void* descriptor = nullptr;  ///< The adapter's own.
};

/// Called from `Wire::deliver`. The message is valid during the call; to keep a waiting payload, copy the AmMessage
/// struct and call `am_receive` or `am_discard` on the copy later (header and data do not survive the call).
using AmHandler = void (*)(void* context, AmMessage& message) noexcept;

/// Called from `Wire::deliver`, beyond its limit and once for an endpoint that the network gave up: posts on it fail
/// from then on, and what the peer had still to send may never come. It is still to be disconnected, which the handler
/// may do.
using FailureHandler = void (*)(void* context, WireEndpoint* endpoint) noexcept;

/// What an adapter can do. Data, asked at run time; tests and path choice read it.
struct WireCapabilities {
  std::string name;     ///< "ucx", "loopback", "faulty(ucx)".
  std::string version;  ///< "UCX 1.22.0 (path of the library)".
  std::string remark;   ///< What the program should know of that library, in whole sentences; empty: nothing.
  bool active_messages = false;
  bool remote_memory = false;  ///< `Wire::remote_memory()` is not null.
  bool between_processes = false;
  bool can_sleep = false;                     ///< `event_fd` and `arm` work.
  bool reports_truncation_to_sender = false;  ///< A pending send completes `truncated` when the receive was too short.
  std::uint32_t kinds = 0;  ///< Bit (1 << MemoryKind) is set where tag_send/tag_recv take the memory directly.
  std::size_t am_header_bytes_max = 0;
  std::size_t am_eager_bytes_max = 0;

  [[nodiscard]] bool takes(MemoryKind kind) const noexcept {
    const auto index = static_cast<unsigned>(kind);
    return index < static_cast<unsigned>(kMemoryKindCount) && ((kinds >> index) & 1u) != 0;
  }
};

class RemoteMemory;

class Wire {
 public:
  Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  virtual ~Wire() = default;

  [[nodiscard]] virtual const WireCapabilities& capabilities() const noexcept = 0;

  /// The bytes a peer needs for `connect`. Valid as long as the wire.
  [[nodiscard]] virtual std::span<const std::byte> address() const noexcept = 0;

  /// Connects to the wire that has this address. May be one's own. The endpoint belongs to the wire.
  virtual Result<WireEndpoint*> connect(std::span<const std::byte> address) noexcept = 0;

  /// Gives an endpoint up because its peer is dead or because the job ends. Operations pending on it complete with
  /// `canceled` in the next `deliver`. Towards a dead peer their buffers are no longer touched from then on; towards
  /// one that lives an adapter may still read the sources (the gotchas page of the adapter says), so agree with it
  /// first or keep them until the wire is closed. Afterwards the endpoint must not be used.
  virtual void disconnect(WireEndpoint* endpoint) noexcept = 0;

  /// Who is told of endpoints that failed. A wire whose endpoints never fail by themselves tells nobody. A network may
  /// notice nothing of a peer that is silent: that it tells nothing does not say that the peer lives.
  virtual void set_failure_handler(FailureHandler, void* /*context*/) noexcept {}

  /// Sends `source` to whoever receives `tag`. Done or completed means: the source buffer is free.
  /// `source.kind` must be resolved (not `detect`) and be one the capabilities name.
  virtual Status tag_send(WireEndpoint* endpoint, std::uint64_t tag, ConstBuffer source, WireOp& op) noexcept = 0;

  /// Receives the first message whose tag agrees with `tag` in the bits of `mask`; op.bytes and op.tag say what came.
  /// A message longer than the buffer completes with `truncated`; what the buffer then holds is undefined, but nothing
  /// behind it is touched. One that completes with any other error has taken its message as well, which could not be
  /// put into the buffer; but for `canceled` and `peer_lost`, with which none has come.
  virtual Status tag_recv(std::uint64_t tag, std::uint64_t mask, Buffer landing, WireOp& op) noexcept = 0;

  /// Withdraws a pending tag_recv or am_receive: it completes with `canceled` unless it matched first. Sends cannot be
  /// withdrawn (see disconnect).
  virtual void cancel(WireOp& op) noexcept = 0;
  /// As cancel, for a tag_recv or am_receive whose sender is known to be dead and disconnected: it completes with
  /// `canceled` (unless it is done) in the next `deliver` even if it had matched, since a network that announced a long
  /// message cannot be told that the rest will never come.
  virtual void abandon(WireOp& op) noexcept { cancel(op); }
  /// As cancel, for a receive whose buffer is about to be freed: on return nothing is written into it any more, even if
  /// it had matched a long message. Works on the network for as long as that takes (bounded; beyond, it says so).
  virtual void take_back(WireOp& op) noexcept { cancel(op); }
  /// Drops the tagged messages that have come, that no receive has met, and whose tags agree with `tag` in the bits of
  /// `mask`: those of a peer that is disconnected, so that no receive for another peer ever meets them. Returns how
  /// many.
  virtual unsigned drop_unread(std::uint64_t tag, std::uint64_t mask) noexcept = 0;

  /// Sends an active message: `header` is copied before return; `payload` (host-accessible or any kind of the
  /// capabilities) is free at completion. `id` is 0 to 63.
  virtual Status am_send(WireEndpoint* endpoint, unsigned id, std::span<const std::byte> header, ConstBuffer payload,
                         WireOp& op) noexcept = 0;
  virtual void set_am_handler(unsigned id, AmHandler handler, void* context) noexcept = 0;
  /// Lands the payload of a message whose `data` was null. Truncates like tag_recv.
  virtual Status am_receive(AmMessage& message, Buffer landing, WireOp& op) noexcept = 0;
  virtual void am_discard(AmMessage& message) noexcept = 0;

  /// Moves the network; calls nobody. Returns the number of events seen, 0 when idle.
  virtual unsigned progress() noexcept = 0;
  /// Runs the handlers of arrived active messages and `on_complete` of completed operations, at most `limit` of them
  /// together. Returns how many. Both may post again.
  virtual unsigned deliver(unsigned limit) noexcept = 0;

  /// A file descriptor that becomes readable when there is something to do, after `arm` returned true. -1 if
  /// !can_sleep.
  [[nodiscard]] virtual int event_fd() const noexcept = 0;
  /// True: nothing is pending and event_fd will wake the caller. False: call progress again first.
  virtual bool arm() noexcept = 0;

  /// One-sided operations, or null.
  virtual RemoteMemory* remote_memory() noexcept = 0;
};

/// Memory that peers may read and write, registered with the wire. Belongs to the adapter.
struct WireSegment;
/// A peer's segment as seen from here.
struct WireKey;

class RemoteMemory {
 public:
  RemoteMemory() = default;
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;
  virtual ~RemoteMemory() = default;

  /// Registers existing memory of a resolved kind. `base` stays the caller's.
  virtual Result<WireSegment*> register_memory(Buffer memory) noexcept = 0;
  /// Allocates host memory that same-host peers can map (`map_remote`), and registers it. Freed by release_segment.
  virtual Result<WireSegment*> allocate_shared(std::size_t bytes) noexcept = 0;
  [[nodiscard]] virtual Buffer memory_of(const WireSegment* segment) const noexcept = 0;
  /// What a peer needs for `import_key`.
  virtual Result<std::vector<std::byte>> pack_key(const WireSegment* segment) noexcept = 0;
  virtual void release_segment(WireSegment* segment) noexcept = 0;

  virtual Result<WireKey*> import_key(WireEndpoint* endpoint, std::span<const std::byte> packed) noexcept = 0;
  virtual void release_key(WireKey* key) noexcept = 0;
  /// A pointer through which this process loads and stores the peer's memory, or not_supported.
  virtual Result<void*> map_remote(WireKey* key, std::uint64_t remote_address) noexcept = 0;

  /// Completion means: the source is free. Visible at the target after a later `flush` completed, unless `op.visible`
  /// says that it is already. peer_rejected: the owner has released the segment; a wire that cannot tell writes to
  /// memory that may not be there any more (the gotchas page of the adapter says where).
  virtual Status put(WireEndpoint* endpoint, WireKey* key, std::uint64_t remote_address, ConstBuffer source,
                     WireOp& op) noexcept = 0;
  /// Completion means: the bytes are in `landing`.
  virtual Status get(WireEndpoint* endpoint, WireKey* key, std::uint64_t remote_address, Buffer landing,
                     WireOp& op) noexcept = 0;
  /// Host memory, which is aligned to the word's size (invalid_argument; not_supported: other memory, which CPUs do not
  /// reach). All that exist (`Atomic::exists`); each is visible at the target when it has completed. `before` (may not
  /// be null) receives the bits of the value that was there, of a store 0. CPUs perform it, so that those of processes
  /// that map the memory agree with it.
  virtual Status atomic(WireEndpoint* endpoint, WireKey* key, std::uint64_t remote_address, const Atomic& what,
                        std::uint64_t* before, WireOp& op) noexcept = 0;
  /// Completes when all earlier puts and atomics on the endpoint are visible at the target.
  virtual Status flush(WireEndpoint* endpoint, WireOp& op) noexcept = 0;
};

}  // namespace brant::port
