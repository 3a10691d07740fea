#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "brant/base/buffer.h"
#include "brant/base/shape.h"
#include "brant/core/path.h"
#include "core/engine.h"
#include "ops/mover/copy_lane.h"
#include "ops/mover/shape_cursor.h"
#include "ops/mover/stage_pool.h"

namespace brant {

class Mover;
struct Move;

/// One end of a move: memory that this process, or a device of it, reaches (its own, or what it has mapped of a peer),
/// or memory of the peer that only the network reaches.
struct MoveEnd {
  MoveEnd() noexcept = default;
  MoveEnd(const void* memory, MemoryKind kind_in) noexcept
      : address(reinterpret_cast<std::uintptr_t>(memory)), kind(kind_in) {}
  /// `address`: in the peer's process.
  static MoveEnd over_network(std::uint64_t address, MemoryKind kind) noexcept {
    MoveEnd end;
    end.address = address;
    end.kind = kind;
    end.over_wire = true;
    return end;
  }

  [[nodiscard]] std::byte* memory() const noexcept { return reinterpret_cast<std::byte*>(address); }

  std::uint64_t address = 0;  ///< As a destination 0 says that nobody wants the bytes any more: the CPU drops them.
  MemoryKind kind = MemoryKind::host;
  bool over_wire = false;
};

/// The way to memory of a peer.
struct RemoteWay {
  Peer& peer;
  port::WireKey* key = nullptr;  ///< Null: the network has none.
};

/// Where a step of a move stands at one end.
struct StepPlace {
  MoveEnd place;                 ///< Of its first byte; with a shape, of what the shape is laid on.
  const Shape* shape = nullptr;  ///< Null: in one run.
  std::size_t position = 0;      ///< So many bytes of the shape come before this step.

  void advance(std::size_t bytes) noexcept {
    if (shape != nullptr) {
      position += bytes;
    } else if (place.address != 0) {
      place.address += bytes;
    }
  }
};

/// One end of a step of a move.
struct StepEnd : StepPlace {
  RunMark* mark = nullptr;  ///< Of a list of runs: where the step before this one began. May be null.
};

/// How far a move has come along the lists of runs at its ends.
struct RunMarks {
  RunMark from;
  RunMark to;
};

/// Whom a move tells of what becomes of it. From progress, never inside a call of the mover.
struct MoveEvents {
  void (*ended)(Move& move, Status status) noexcept;
  /// Of a put over the network that ends once it is visible there: its source may be used again. May be null.
  void (*source_free)(Move& move) noexcept;
};

/// Bytes on their way from one place to another. Its owner fills in the ends, keeps the record in place from
/// `Mover::start` to the end, and may use it again then. How the bytes go is the path's; each way keeps in `step` what
/// it needs of its own.
struct Move {
  /// What the CPU still has to copy of the present step.
  struct ByCpu {
    StepPlace to;
    StepPlace from;
    std::size_t left = 0;
  };
  struct ByDevice : DeviceCopy {
    Move* move = nullptr;
  };
  struct ByWire : port::WireOp {
    Mover* mover = nullptr;
    Move* move = nullptr;
  };
  /// The network had no room for its present step.
  struct Refused {};

  explicit Move(const MoveEvents& events_in) noexcept : events(&events_in) {}
  Move(const Move&) = delete;
  Move& operator=(const Move&) = delete;
  ~Move() = default;

  const MoveEvents* events;
  MoveEnd from;
  MoveEnd to;
  std::size_t bytes = 0;
  const TransferShapes* shapes = nullptr;  ///< How they lie, if not in one run at either end. The caller's, to the end.
  RunMarks* marks = nullptr;               ///< The mover's, where a shape is a list.
  const RemoteWay* way = nullptr;          ///< If memory of a peer is at one end: where the network finds it.
  std::size_t moved = 0;                   ///< In several steps: what has arrived.
  CopySignal signal;                       ///< Wanted of one copy between two places; given if `signaled`.
  StagePool::Lease stage;
  std::variant<std::monostate, ByCpu, ByDevice, ByWire, Refused> step;
  ListHook<Move> hook;  ///< In the list of what the CPU copies, what waits for a flush, or for room in the network.
  Path path = Path::automatic;  ///< What is to carry it; at the end, what did.
  bool tells_visible = false;   ///< A put over the network: it ends when the bytes are visible there, not before.
  bool needs_flush = false;     ///< Some of its puts have gone, and are not known to be visible.
  bool source_is_free = false;  ///< Of such a put, before it ends.
  bool leaving = false;         ///< Staged: the piece is in the buffer and goes on from there.
  bool signaled = false;        ///< The word of `signal` has been set behind the bytes.
};
static_assert(sizeof(Move) <= 256, "what is kept of a message while its bytes move");

}  // namespace brant
