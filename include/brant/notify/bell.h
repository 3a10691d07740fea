#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "brant/base/api.h"
#include "brant/base/ids.h"
#include "brant/core/operation.h"
#include "brant/core/stream.h"
#include "brant/device/notify.cuh"

namespace brant {

class BellBoard;
class Runtime;
struct OpenPeerBell;

/// Who rings a bell.
enum class RungBy : std::uint8_t {
  device,  ///< Kernels and streams of this process's device.
  host,    ///< This process, by `Bell::ring`.
  peer,    ///< Another process of this host, its kernels, its streams, or (what the host sees) itself.
};
/// Who looks at it.
enum class SeenBy : std::uint8_t {
  host,    ///< This process: in `Worker::progress`.
  device,  ///< Kernels and streams of this process's device.
};

/// Where the word of a bell lies.
enum class BellPlace : std::uint8_t {
  automatic,  ///< What the host sees or rings: pinned memory; else device memory.
  pinned,     ///< Memory of the host that the device reaches.
  device,     ///< Memory of the device, which the host does not reach: between devices, or two kernels of one.
  /// Memory of the device that the CPU writes through the bus: what the host rings and the device sees, so that kernels
  /// look at memory of their own. On a GPU it needs a driver that maps a dma-buf for the CPU (CUDA 13.3).
  bar1,
};

struct BellOptions {
  RungBy rung_by = RungBy::device;
  SeenBy seen_by = SeenBy::host;
  BellPlace place = BellPlace::automatic;
  Rank peer{-1};  ///< Who rings, with RungBy::peer: waits end as peer_lost when it dies.
};

/// What another process needs to ring a bell: plain bytes that travel by a channel, a file or an argument. Valid until
/// the bell is closed.
class BRANT_API BellTicket {
 public:
  static constexpr std::size_t kBytesMax = 320;

  BellTicket() noexcept = default;
  /// A copy of bytes that came from elsewhere. They are judged where a PeerBell is made.
  explicit BellTicket(std::span<const std::byte> packed) noexcept;
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {bytes_.data(), size_ <= bytes_.size() ? size_ : 0};
  }

 private:
  std::uint32_t size_ = 0;
  std::array<std::byte, kBytesMax - sizeof(std::uint32_t)> bytes_{};
};

/// A bell of this process: a counter in one direction, whose value is called its epoch. It begins at 0 and only grows;
/// each ring tells the epoch that has been reached, and what was written before it is there for whoever sees it. Made
/// by a Notifier, movable, of the worker's thread, and closed before its Runtime goes.
///
///     Bell packed = notifier.make({.rung_by = RungBy::device, .seen_by = SeenBy::host});
///     kernel.launch(shape, stream, packed.device(), ...);     // rings it, and need not end
///     (co_await packed.when(epoch)).or_throw("the face was not packed");
class BRANT_API Bell {
 public:
  static constexpr std::chrono::nanoseconds kNotifiersPatience{-1};

  Bell() noexcept = default;
  Bell(Bell&& other) noexcept : board_(std::exchange(other.board_, nullptr)), slot_(other.slot_) {}
  Bell& operator=(Bell&& other) noexcept {
    if (this != &other) {
      close();
      board_ = std::exchange(other.board_, nullptr);
      slot_ = other.slot_;
    }
    return *this;
  }
  ~Bell() { close(); }

  /// What waits for it ends with `canceled`. Kernels and peers that use it must have ended: its word is another bell's
  /// later.
  void close() noexcept;
  [[nodiscard]] bool is_open() const noexcept { return board_ != nullptr; }
  /// By which errors name it.
  [[nodiscard]] std::uint32_t number() const noexcept;

  /// For kernels: to ring it, or to wait for it. Of a closed bell one without a word.
  [[nodiscard]] notify::DeviceBell device() const noexcept;
  /// As the host sees it now, or has rung it last. 0 where the host sees neither.
  [[nodiscard]] std::uint64_t epoch() const noexcept;

  /// RungBy::host. What this thread wrote before is there for kernels that see the epoch. invalid_argument: it is
  /// closed, others ring it, or the epoch lies behind the last one. Costs a store.
  Status ring(std::uint64_t epoch) noexcept;

  /// SeenBy::host. `op.delivered` when the bell has reached the epoch: in_progress, or ok if it has by now. The sink
  /// may post: a send, a call of a chare, a ring of another bell. Errors: timed_out after `patience`, and the log says
  /// what was seen and which kernels run; canceled (closed, withdrawn), peer_lost, device_failed, limit_reached (too
  /// many wait), invalid_argument (closed, or the host does not see it). Progress looks at a bell while somebody waits
  /// for it. No allocation in steady state.
  Status post_when(Op& op, std::uint64_t epoch, std::chrono::nanoseconds patience = kNotifiersPatience) noexcept;
  /// The same, to be awaited.
  Operation when(std::uint64_t epoch, std::chrono::nanoseconds patience = kNotifiersPatience) noexcept {
    return Operation(Moment::delivered, [&](Op& op) noexcept { return post_when(op, epoch, patience); });
  }

  /// RungBy::device: rung when the stream comes there. SeenBy::device: the stream goes on when the bell has reached the
  /// epoch. For kernels that nobody can change; also while the stream is captured, where the graph then rings and waits
  /// for the same epoch each time. While such a wait has not passed, one of a graph excepted, memory that is given back
  /// is kept, since the driver would free it behind the wait alone. Costs a call of the driver, a wait two.
  /// invalid_argument: the bell is closed or not of that sort, no stream; not_supported: a device without stream memory
  /// operations.
  Status enqueue_ring(StreamHandle stream, std::uint64_t epoch) noexcept;
  Status enqueue_wait(StreamHandle stream, std::uint64_t epoch) noexcept;

  /// For the process that rings it. Throws Error: invalid_argument unless RungBy::peer, not_supported where nobody can
  /// map the memory.
  [[nodiscard]] BellTicket ticket() const;

 private:
  friend class Notifier;
  Bell(BellBoard& board, std::uint32_t slot) noexcept : board_(&board), slot_(slot) {}

  BellBoard* board_ = nullptr;
  std::uint32_t slot_ = 0;
};

/// A bell of another process of this host, to be rung here. Movable, of the worker's thread; goes before its Runtime,
/// and when no kernel rings it any more.
class BRANT_API PeerBell {
 public:
  PeerBell() noexcept;
  /// Maps its memory, once for all bells of a Notifier. Waits for the owner's answer if that has to free memory first.
  /// Throws Error: invalid_argument (no ticket, a damaged one, another rank's), not_supported (another host; the memory
  /// cannot be mapped), peer_lost, timed_out.
  PeerBell(Runtime& runtime, Rank owner, const BellTicket& ticket);
  PeerBell(PeerBell&& other) noexcept;
  PeerBell& operator=(PeerBell&& other) noexcept;
  ~PeerBell();

  /// For kernels, to ring it.
  [[nodiscard]] notify::DeviceBell device() const noexcept;
  /// By this process, where the owner's host sees it. An epoch that the bell has reached by now changes nothing, and
  /// is ok. not_supported: it lies in device memory. Costs an atomic on the word.
  Status ring(std::uint64_t epoch) noexcept;
  /// See Bell::enqueue_ring.
  Status enqueue_ring(StreamHandle stream, std::uint64_t epoch) noexcept;

 private:
  std::unique_ptr<OpenPeerBell> open_;
};

}  // namespace brant
