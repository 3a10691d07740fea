#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/object_pool.h"
#include "ops/mover/cpu_copier.h"
#include "ops/mover/device_copier.h"
#include "ops/mover/flusher.h"
#include "ops/mover/move.h"
#include "ops/mover/shaped_copier.h"
#include "ops/mover/stager.h"
#include "ops/mover/wire_runs.h"

namespace brant {

/// The one place where bytes are moved: by the CPU, a device, the network, or by way of a pinned buffer. Who matches
/// messages, or names memory of others, decides what goes where and by which path, and starts a Move.
///
/// One per engine (`Engine::service`). Layers ask for it when they are made, so that it goes before the records of
/// theirs that its last copies lie in: it waits for those. The worker's thread.
class Mover final : public Service, private Poller {
 public:
  /// Between a device and host memory a copy engine is faster for more: the courier waits for its reads of the bus.
  static constexpr std::size_t kCourierFromHost = std::size_t{4} << 10;
  static constexpr std::size_t kCourierToHost = std::size_t{16} << 10;

  /// Of the path staged: so much is in the pinned buffer at a time.
  static constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

  explicit Mover(Engine& engine);
  ~Mover() override;
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  /// Starts a move whose ends, shapes and path are set. `Move::signal` is set behind the bytes if the
  /// courier carries them, or a copy engine where that is on (see `sets_words`). ok: it is done. in_progress:
  /// `events->ended` will be called, once, from progress. not_supported: such shapes (over the network, and
  /// between devices and pageable memory, only staged). Anything else: nothing was started. Copies up to
  /// CpuCopier::kTurnBytes within the call; else some hundred nanoseconds, or a call of the network.
  Status start(Move& move) noexcept;
  /// As `start`: one copy by the device, at once, between its memory and a buffer of the stage pool.
  Status start_staging(Move& move) noexcept;
  /// What can be stopped is stopped, and is not told of any more. False: it goes on, and ends by itself.
  bool withdraw(Move& move) noexcept;
  /// What is being copied by the CPU goes to another place from where it stands: all of it will be in `to`, if the
  /// caller has put there what was copied so far (the return value); null: nowhere. Bytes copied by others go on.
  std::size_t redirect(Move& move, void* to) noexcept;
  /// Moves nothing: ends when the puts over the network that were started before to `way->peer` are visible there. As
  /// `start`.
  Status flush(Move& move) noexcept;
  /// Made before the first put to a peer over the network that tells when it is visible. Throws bad_alloc.
  void prepare(Peer& peer);
  bool forget(Peer& peer) noexcept override;

  /// Pinned buffers, which outlive the mover where somebody still has one.
  [[nodiscard]] const std::shared_ptr<StagePool>& stages() const noexcept { return stages_; }
  /// Loads the kernels that copy, unless that was done: call it before kernels run that end late.
  void open() noexcept { device_copier_.open(); }
  /// Largest copy that the courier takes; 0 without one.
  [[nodiscard]] std::size_t courier_bytes() noexcept { return device_copier_.courier_bytes(); }
  /// Copies of a copy engine set the words that are wanted of them, too.
  [[nodiscard]] bool sets_words() noexcept { return device_copier_.sets_words(); }
  /// Whether a courier has copies of this process under way.
  [[nodiscard]] bool courier_carries() const noexcept { return device_copier_.courier_carries(); }

 private:
  /// Goes on until something takes time, or all is done.
  Status advance(Move& move) noexcept;
  Status start_step(Move& move) noexcept;
  [[nodiscard]] static bool can_shape(const Move& move) noexcept;
  [[nodiscard]] std::size_t step_bytes(const Move& move) const noexcept;
  bool note_step(Move& move) const noexcept;
  Status copy(Move& move, const StepEnd& to, const StepEnd& from, std::size_t bytes) noexcept;
  Status by_device(Move& move, const StepEnd& to, const StepEnd& from, std::size_t bytes) noexcept;
  Status by_shaped_copier(Move& move, const StepEnd& to, const StepEnd& from, std::size_t bytes) noexcept;
  Status by_wire(Move& move, const MoveEnd& to, const MoveEnd& from, std::size_t bytes) noexcept;
  Status stage(Move& move, Stager::Direction direction, const StepEnd& to, const StepEnd& from,
               std::size_t bytes) noexcept;
  static DeviceCopy& device_step(Move& move) noexcept;
  static void copied(void* mover, DeviceCopy& copy, Status status) noexcept;
  /// All bytes have left their source; those of a put over the network may still be under way.
  Status all_moved(Move& move) noexcept;
  /// A step that took time has ended.
  void step_ended(Move& move, Status status) noexcept;
  void go_on(Move& move, Status status) noexcept;
  void end(Move& move, Status status) noexcept;
  void take_marks(Move& move) noexcept;
  void give_back(Move& move) noexcept;
  /// Moves that the network had no room for.
  unsigned poll() noexcept override;

  Engine& engine_;
  const std::shared_ptr<StagePool> stages_;
  CopyKernels kernels_;
  DeviceCopier device_copier_;
  Stager stager_;
  ShapedCopier shaped_copier_;
  CpuCopier cpu_copier_;
  WireRuns wire_runs_;
  std::unordered_map<std::int32_t, std::unique_ptr<Flusher>> flushers_;  ///< By rank.
  IntrusiveList<Move, &Move::hook> refused_;                             ///< By the network, for now.
  ObjectPool<RunMarks> marks_{SIZE_MAX};                                 ///< Of moves that have a list of runs.
};

}  // namespace brant
