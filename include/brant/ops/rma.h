#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "brant/base/api.h"
#include "brant/base/buffer.h"
#include "brant/base/ids.h"
#include "brant/base/result.h"
#include "brant/base/shape.h"
#include "brant/core/operation.h"
#include "brant/core/path.h"
#include "brant/ops/atomics.h"

/// One-sided transfers: a process exposes memory, others put bytes into it and get bytes out of it, and its program
/// takes no part.
///
///     Segment segment = expose(runtime, memory);               // the owner
///     SegmentTicket ticket = segment.ticket();                  // to the others, by any means
///     RemoteSegment there(runtime, Rank{0}, ticket);            // each of them
///     OpResult put = co_await there.put(offset, source);        // visible at the owner when this resumes, if ok()
namespace brant {

class RmaTarget;
class Runtime;
struct ExposedSegment;

/// What others need to reach a segment: plain bytes, which may travel by a channel, a file or an argument. Valid until
/// the segment is closed. Trivially copyable; `bytes` is what is worth sending.
class BRANT_API SegmentTicket {
 public:
  static constexpr std::size_t kBytesMax = 1024;

  SegmentTicket() noexcept = default;
  /// A copy of bytes that came from elsewhere; too many of them make a ticket that nobody takes. They are judged where
  /// a RemoteSegment is made.
  explicit SegmentTicket(std::span<const std::byte> packed) noexcept;

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {bytes_.data(), size_ <= bytes_.size() ? size_ : 0};
  }
  /// As it was told: of what is too long for a ticket, more than `bytes` has.
  [[nodiscard]] std::size_t told_size() const noexcept { return size_; }

 private:
  std::uint32_t size_ = 0;
  std::array<std::byte, kBytesMax - sizeof(std::uint32_t)> bytes_{};
};

/// Memory of this process that others may read and write, of any kind. The memory stays the caller's and must stay
/// valid until the segment is closed (or destroyed) *and* no peer uses it any more: what peers have mapped they can
/// write until they close their RemoteSegment, and freed GPU memory goes back to the driver only then. A put that comes
/// after the close ends with an error where that is noticed (by some networks, or within this process), and otherwise
/// writes into pages that this process no longer has. Over TCP, gets between host memory, and puts of at most 16 KB,
/// may be under way: they end with peer_rejected, and the memory may be freed. Larger puts there, and what has GPU
/// memory at either end, must have ended: one that comes later ends this process if the memory is freed. Belongs to the
/// worker's thread; goes before its runtime.
class BRANT_API Segment {
 public:
  Segment() noexcept = default;
  Segment(Segment&&) noexcept = default;
  Segment& operator=(Segment&& other) noexcept {
    if (this != &other) {
      close();
      exposed_ = std::move(other.exposed_);
    }
    return *this;
  }
  ~Segment() { close(); }

  /// Peers must have ended with it. Over TCP a put of more than 16 KB that comes later, when the memory is freed, ends
  /// this process: UCX writes what it has read from the socket straight to the address that the peer names, which is
  /// why it is four times as fast there as what brant could check (docs/gotchas/ucx.md, 24).
  void close() noexcept;
  [[nodiscard]] bool is_open() const noexcept { return exposed_ != nullptr; }
  /// A ticket without bytes once the segment is closed.
  [[nodiscard]] SegmentTicket ticket() const noexcept;
  [[nodiscard]] Buffer memory() const noexcept;

 private:
  friend Segment expose(Runtime& runtime, Buffer memory);
  explicit Segment(std::shared_ptr<ExposedSegment> exposed) noexcept : exposed_(std::move(exposed)) {}

  std::shared_ptr<ExposedSegment> exposed_;
};

/// Exposes memory of this process: registers it with the network, and exports it if peers of this host can map it (host
/// memory of Runtime::allocate from 16 KB on, device memory). Not collective. Throws Error: invalid_argument (no bytes,
/// or past the end of an allocation), wrong_kind, no_memory. Costs a system call or more, and with some networks time
/// in proportion to the size.
BRANT_API Segment expose(Runtime& runtime, Buffer memory);

enum class RmaDirection : std::uint8_t { put, get };

/// A word that the device which copies a put sets behind its bytes: whoever sees it sees them, sooner than this CPU
/// hears of them. A copy that no device makes, or that a copy engine does, leaves it alone.
struct WordBehind {
  std::uint64_t* word = nullptr;  ///< As this process's device reaches it (RemoteSegment::device_pointer). Null: none.
  std::uint32_t value = 0;
  bool* was_set = nullptr;  ///< Written when the put has ended. The caller's until then.
};

struct RmaOptions {
  /// Forces the path, for measuring; not_supported if it cannot carry the bytes. `automatic` follows BRANT_PATH, then
  /// brant's own choice (docs/how-it-works/paths.md).
  Path path = Path::automatic;
  /// How the bytes lie, if not in one run at either end: `from` and `to` of the transfer, as many at either. The shape
  /// of the segment's end is laid on the offset, that of the local end on the buffer, inside which it must lie. Stays
  /// the caller's, with the runs of a list, and valid until the operation has ended; one that nobody observes any more,
  /// until `pending()` is 0. Between memory that is mapped everything is served: the CPU or a kernel packs, unpacks, or
  /// goes from one shape into the other; with pageable memory at one end and a device's at the other by way of a pinned
  /// buffer. Over the network the bytes go packed to a pinned buffer of 1 MB at most, and from there in a put or get
  /// for each run of the segment's end: many short ones cost a call each.
  const TransferShapes* shapes = nullptr;
  WordBehind word_behind{};
};

/// A segment of a process (also of this one), as seen from here. Making one maps or imports the memory; keep it for as
/// long as it is used. Belongs to the worker's thread, movable, goes before its runtime.
///
/// Puts and gets are not ordered with one another, nor with messages, but by their completions. They cannot be
/// withdrawn: `cancel` does nothing, and one that is no longer observed (`Op::detach`, a destroyed Operation) goes on;
/// its buffer must stay valid until `pending()` is 0. Destroying the RemoteSegment lets go of the memory when the last
/// of them has ended. A dead owner ends them with `peer_lost`; what was mapped may have been written all the same.
class BRANT_API RemoteSegment {
 public:
  RemoteSegment() noexcept = default;
  /// Throws Error: invalid_argument (no ticket of this rank, or a damaged one), not_found (the segment was closed),
  /// peer_lost, not_supported (its memory can be reached by no means), version_mismatch (another brant's ticket).
  RemoteSegment(Runtime& runtime, Rank rank, const SegmentTicket& ticket);
  RemoteSegment(RemoteSegment&& other) noexcept : target_(std::exchange(other.target_, nullptr)) {}
  RemoteSegment& operator=(RemoteSegment&& other) noexcept {
    if (this != &other) {
      close();
      target_ = std::exchange(other.target_, nullptr);
    }
    return *this;
  }
  ~RemoteSegment() { close(); }

  void close() noexcept;
  [[nodiscard]] bool is_open() const noexcept { return target_ != nullptr; }
  [[nodiscard]] Rank rank() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] MemoryKind kind() const noexcept;
  /// Where it begins in its owner's process, by which words in it are aligned. 0 once it is closed.
  [[nodiscard]] std::uint64_t owners_address() const noexcept;
  /// Operations that have not ended, of this segment.
  [[nodiscard]] std::size_t pending() const noexcept;
  /// Where the CPU of this process reaches the segment: memory of the host, its own or mapped. Until `close`, and null
  /// elsewhere.
  [[nodiscard]] void* host_pointer() const noexcept;
  /// Where kernels of this process's device reach the segment, for them to write there by themselves (see
  /// brant/device/put.cuh); until `close`. Null: they do not, or not yet (its memory is on its way), or it is closed.
  /// The first time, for host memory, it costs what registering its whole allocation takes, about 100 us a MB; not if
  /// that has more than `lock_at_most` bytes, for which the answer is null.
  [[nodiscard]] void* device_pointer(std::size_t lock_at_most = ~std::size_t{0}) const noexcept;
  /// The path that a transfer from or to local memory of this kind (not `detect`) takes; `pinned` is memory that this
  /// process pinned. not_supported if a forced path cannot carry it.
  [[nodiscard]] Result<Path> path_of(MemoryKind kind, std::size_t bytes, RmaDirection direction,
                                     const RmaOptions& options = {}) const noexcept;

  /// Writes `source` at `offset` bytes into the segment. `op.source_free`: the source may be reused. `op.delivered`:
  /// the bytes are visible to the owner, to its CPU for host memory, to work it launches from then on for device
  /// memory. Over the network `delivered` costs a flush, so ask for it of the last of several puts only. Returns ok
  /// when every moment asked for has happened: host memory that is mapped, up to 256 KB, is written inside the call.
  /// Errors: invalid_argument (outside the segment, past the end of an allocation, shapes that differ in size or reach
  /// beyond their end), wrong_kind, not_supported (the path or the shapes), limit_reached (65536 under way; try again
  /// after progress), peer_lost, peer_rejected or not_found (closed). No allocation in steady state.
  Status post_put(std::uint64_t offset, ConstBuffer source, Op& op, const RmaOptions& options = {}) noexcept;
  /// Reads bytes at `offset` into `landing`; only `op.delivered` applies. It has the outcomes of `post_put`.
  Status post_get(std::uint64_t offset, Buffer landing, Op& op, const RmaOptions& options = {}) noexcept;

  /// Performs an atomic on the word at `offset`, which is a multiple of its size. `before`, if it is not null, gets the
  /// value that was there, in as many bytes as the word has, and is the caller's until the operation has ended; a store
  /// tells none (`swap` does). Only `op.delivered` applies: it is done, and visible to all who may see the word.
  ///
  /// Who performs it follows from what the segment is, and nothing else: of host memory a CPU (this one, within the
  /// call, if the memory is mapped here, else the owner's, when its progress comes to it), of device memory the device
  /// of this process, by a kernel with atomics of system scope. So all who use these calls on one word agree, whichever
  /// way they have to it. Their own threads may join in with std::atomic_ref on host memory, kernels with
  /// `cuda::thread_scope_system` on device memory. Kernels that touch a word of *host* memory agree with CPUs only
  /// where the bus carries atomics (NVLink-C2C, or PCIe with them): brant never does that.
  ///
  /// Each is an acquire and a release (a load the one, a store the other): who sees its value sees what its caller had
  /// written by its CPU, and every put and atomic whose end its caller had awaited. So a ticket or a lock made of these
  /// protects puts and gets, if each is awaited before the next. Without that, atomics have no order among themselves.
  ///
  /// `path` (or BRANT_PATH) `shm` and `ucx` force the mapped memory and the network, of host memory; other names
  /// concern copies alone. Errors: invalid_argument (outside the segment, not aligned, no such operation on such a
  /// type, `before` of a store), not_supported (the forced path; a device without kernels), limit_reached
  /// (under way: 65536, of device memory 4096; try again after progress), peer_lost, peer_rejected or not_found
  /// (closed). A CPU of a peer may have performed one that ends with peer_lost. Allocates nothing in steady state.
  /// An owner that sleeps in a wait for a word of host memory is woken. Costs 0.13 us on mapped host memory, a round
  /// trip over the network, a launch of a kernel on device memory: those that are posted together go in one. Device
  /// memory that is not mapped here its owner's device performs them on, asked by a message: in the owner's progress.
  Status post_atomic(std::uint64_t offset, const Atomic& what, Op& op, void* before = nullptr,
                     Path path = Path::automatic) noexcept;

  /// The same as objects to await.
  Operation put(std::uint64_t offset, ConstBuffer source, const RmaOptions& options = {},
                Moment until = Moment::delivered) noexcept {
    return Operation(until, [&](Op& op) noexcept { return post_put(offset, source, op, options); });
  }
  Operation get(std::uint64_t offset, Buffer landing, const RmaOptions& options = {}) noexcept {
    return Operation(Moment::delivered, [&](Op& op) noexcept { return post_get(offset, landing, op, options); });
  }
  /// An atomic whose value before nobody asks for.
  Operation atomic(std::uint64_t offset, const Atomic& what, Path path = Path::automatic) noexcept {
    return Operation(Moment::delivered, [&](Op& op) noexcept { return post_atomic(offset, what, op, nullptr, path); });
  }
  /// One that tells it. The word is of the type that is named: `fetch<double>(offset, AtomicOp::min, 1.5)`.
  template <AtomicValue T>
  FetchOperation<T> fetch(std::uint64_t offset, AtomicOp operation, std::type_identity_t<T> operand = {},
                          std::type_identity_t<T> expected = {}, Path path = Path::automatic) noexcept {
    return FetchOperation<T>([&](Op& op, T* before) noexcept {
      return post_atomic(offset, Atomic::of<T>(operation, operand, expected), op, before, path);
    });
  }
  template <AtomicValue T>
  FetchOperation<T> fetch_add(std::uint64_t offset, std::type_identity_t<T> value) noexcept {
    return fetch<T>(offset, AtomicOp::add, value);
  }
  /// Stores `desired` if the word is `expected`: it was if that is the value before.
  template <AtomicValue T>
  FetchOperation<T> compare_swap(std::uint64_t offset, std::type_identity_t<T> expected,
                                 std::type_identity_t<T> desired) noexcept {
    return fetch<T>(offset, AtomicOp::compare_swap, desired, expected);
  }

 private:
  RmaTarget* target_ = nullptr;
};

/// `op.delivered`: all puts and atomics that this process has posted to segments of a process, whatever became of their
/// records, are visible there, and ordered before what is posted from then on. ok: they are. Those that fail do not
/// make it fail. Errors: invalid_argument (no such rank, or `op` is pending), peer_lost, limit_reached (4096 are under
/// way), no_memory. Costs a look at each operation that is under way with the process, and a flush where the network
/// took puts.
BRANT_API Status post_fence(Runtime& runtime, Rank rank, Op& op) noexcept;
inline Operation fence(Runtime& runtime, Rank rank) noexcept {
  return Operation(Moment::delivered, [&](Op& op) noexcept { return post_fence(runtime, rank, op); });
}

}  // namespace brant
