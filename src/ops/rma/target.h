#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "brant/ops/rma.h"
#include "core/paths/path_choice.h"
#include "ops/mapping/mapping.h"
#include "ops/mover/mover.h"
#include "ops/rma/exposed.h"
#include "ops/rma/ticket.h"
#include "ops/rma/transfer.h"

namespace brant {

class RmaAtomics;
class RmaTable;

/// What a RemoteSegment stands for: the way into a segment. See there for the rules. Puts and gets are its own,
/// atomics those of RmaAtomics.
class RmaTarget final : private Poller {
 public:
  /// Throws as RemoteSegment does.
  RmaTarget(RmaTable& table, Rank rank, const TicketContent& content);
  RmaTarget(const RmaTarget&) = delete;
  RmaTarget& operator=(const RmaTarget&) = delete;
  ~RmaTarget();

  [[nodiscard]] Peer& peer() noexcept { return peer_; }
  [[nodiscard]] Mover& mover() noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] MemoryKind kind() const noexcept { return kind_; }
  [[nodiscard]] std::size_t live() const noexcept { return live_; }
  /// See RemoteSegment.
  [[nodiscard]] void* host_pointer() const noexcept { return host_accessible(kind_) ? mapped_ : nullptr; }
  [[nodiscard]] void* device_pointer(std::size_t lock_at_most) noexcept;

  [[nodiscard]] PathChoice choose(MemoryKind local, std::size_t bytes, RmaDirection direction, Path forced) noexcept;
  Status post(RmaDirection direction, std::uint64_t offset, Buffer local, Op& op, const RmaOptions& options) noexcept;
  /// What `post` does where it is known without a question that the CPU copies, within the call: small puts and gets,
  /// one after the other, are as fast as the call is. False: nothing was done, and the rules are `post`'s.
  bool post_at_once(RmaDirection direction, std::uint64_t offset, const void* local, std::size_t bytes, MemoryKind kind,
                    Op& op, const RmaOptions& options) noexcept;
  void count_outcome(Status status) noexcept;
  /// No more posts; the target goes when its last transfer has ended.
  void close() noexcept;

 private:
  friend class RemoteSegment;
  friend class RmaAtomics;
  friend class RmaFences;

  void map(const TicketContent& content);
  bool hear_of_freed(Imports& imports, std::uint64_t buffer_id) noexcept;
  bool reach_over_network() noexcept;
  void note_mapped(Result<MappedMemory> memory) noexcept;
  /// Maps the segment once the file has come by means of which that is done.
  void look_for_file() noexcept;
  /// A put or get begins when the file has come and there is room for it, or ends if the file does not come.
  Status await_file(RmaDirection direction, std::uint64_t offset, Buffer local, std::size_t bytes, Op& op,
                    const RmaOptions& options) noexcept;
  void begin_late(RmaTransfer& transfer) noexcept;
  /// False: it has begun.
  bool stop_awaiting(RmaTransfer& transfer) noexcept;
  unsigned poll() noexcept override;
  /// Word of the file wakes the process; nothing does when there is room.
  [[nodiscard]] bool lets_sleep() const noexcept override { return file_.has_value(); }
  Status choose_for(RmaDirection direction, Buffer local, std::size_t bytes, const RmaOptions& options,
                    Path& path) noexcept;
  [[nodiscard]] PathQuery query(MemoryKind local, std::size_t bytes, RmaDirection direction, Path forced) noexcept;
  /// The bytes lie inside, and their owner is there. `what` is wanted of them.
  Status check_place(const char* what, std::uint64_t offset, std::uint64_t bytes) const noexcept;
  Status check(RmaDirection direction, std::uint64_t offset, Buffer local, const TransferShapes* shapes) const noexcept;
  Status choose_for_shapes(RmaDirection direction, Buffer local, const RmaOptions& options, Path& path) noexcept;
  [[nodiscard]] bool is_reached_by_device() noexcept;
  [[nodiscard]] MoveEnd place(std::uint64_t offset, Path path) const noexcept;
  /// Path, bytes and shapes are still to be said.
  RmaTransfer* take_transfer(RmaDirection direction, Buffer local, const MoveEnd& there, const Op& op) noexcept;
  void copy_at_once(RmaDirection direction, std::uint64_t offset, void* local, std::size_t bytes) noexcept;
  void count(RmaDirection direction, Path path, std::size_t bytes) noexcept;
  void trace(const RmaTransfer& transfer) noexcept;
  /// The target may be gone afterwards.
  void release(RmaTransfer& transfer) noexcept;
  /// One operation less is under way. The target may be gone afterwards.
  void let_go() noexcept;
  Status final_status(Status status) noexcept;
  /// A transfer that took time has ended.
  void ended(RmaTransfer& transfer, Status status) noexcept;
  static void on_lost(PeerOp& op) noexcept;
  static void on_cancel(OpOwner& owner) noexcept;

  static constexpr auto kPatience = std::chrono::seconds(1);  ///< With an owner that is asked something.
  static const MoveEvents kEvents;

  RmaTable& table_;
  Engine& engine_;
  Peer& peer_;
  const std::uint64_t segment_;  ///< Its owner's number of it.
  const std::uint64_t address_;  ///< In the owner's process.
  const std::size_t bytes_;
  const MemoryKind kind_;
  std::shared_ptr<ExposedSegment> own_;  ///< Of this very process, else null.
  std::byte* mapped_ = nullptr;          ///< Where this process, or its device, sees the segment.
  MappingLease lease_;                   ///< Of another process's.
  /// Of one that is mapped by means of a file, until that has come or cannot be had: transfers wait for it.
  std::optional<port::ExportRecord> file_;
  IntrusiveList<Move, &Move::hook> awaiting_;
  RemoteWay way_;
  std::vector<std::byte> packed_key_;  ///< Of the network, until it is needed.
  std::size_t live_ = 0;
  /// A put, or a get, of so many bytes of host memory has been the CPU's, with nothing forced. 0: none was asked about.
  std::size_t by_cpu_[2] = {};
  bool closed_ = false;
  bool is_in_the_way_ = false;  ///< Freed memory in the same block of the device is mapped here.
};

}  // namespace brant
