#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "brant/base/intrusive_list.h"
#include "brant/ops/rma.h"
#include "core/engine.h"
#include "models/pgas/copy_record.h"

namespace brant {

class SpaceState;

/// What is known here of one segment.
struct KnownSegment {
  enum class State : std::uint8_t {
    asked,    ///< Its owner has not answered.
    told,     ///< The ticket is here, and is taken in the next progress.
    opening,  ///< It is being taken, which may wait for its owner.
    open,     ///< It is reached.
    leaving,  ///< It is retired; what is under way ends.
  };

  KnownSegment(std::int32_t rank_in, std::uint32_t segment_in) noexcept : rank(rank_in), segment(segment_in) {}

  const std::int32_t rank;
  const std::uint32_t segment;
  State state = State::asked;
  bool is_retired = false;  ///< Its owner has said so.
  RemoteSegment remote;
  std::size_t uses = 0;                   ///< By copies that are posted to other segments.
  std::unique_ptr<SegmentTicket> ticket;  ///< While `told`.
  IntrusiveList<CopyRecord, &CopyRecord::hook> waiting;
};

/// The segments that this process has used or was told of: how each is reached. Those of this process are among them.
class Directory {
 public:
  explicit Directory(SpaceState& space) noexcept : space_(space) {}
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  /// Null unless it can be used at once.
  [[nodiscard]] KnownSegment* find_open(std::int32_t rank, std::uint32_t segment) noexcept {
    KnownSegment* const recent = recent_[place_of(rank, segment)];
    if (recent != nullptr && recent->rank == rank && recent->segment == segment &&
        recent->state == KnownSegment::State::open) [[likely]]
      return recent;
    return look_up(rank, segment);
  }
  /// ok: `known` is open. in_progress: it was asked for, and `known` is where copies wait. Else why it is not reached.
  Status reach(GlobalPtr<const std::byte> at, KnownSegment*& known) noexcept;

  void note_ticket(std::int32_t owner, std::uint32_t segment, Status status,
                   std::span<const std::byte> ticket) noexcept;
  /// A copy that is posted elsewhere uses the segment's memory as well, until it says that it does not.
  void hold(KnownSegment& known) noexcept { ++known.uses; }
  void release(KnownSegment& known) noexcept {
    if (--known.uses == 0 && known.state == KnownSegment::State::leaving) look_at_leaving(known);
  }
  /// False: it is not known here.
  bool note_retired(std::int32_t owner, std::uint32_t segment) noexcept;
  /// Those whose owners have died or ended answer nothing more; those that leave may be idle by now.
  void look_around() noexcept;
  /// Ends all that waits, and lets go of all segments as soon as nothing moves.
  void close() noexcept;
  [[nodiscard]] bool empty() const noexcept { return known_.empty(); }
  /// One whose owner was asked and has not answered; null: there is none.
  [[nodiscard]] const KnownSegment* awaited() const noexcept;

 private:
  static constexpr std::size_t kRecent = 64;
  static constexpr std::size_t kKnownMax = 1 << 20;
  static constexpr std::uint64_t key_of(std::int32_t rank, std::uint32_t segment) noexcept {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(rank)) << 32 | segment;
  }
  static constexpr std::size_t place_of(std::int32_t rank, std::uint32_t segment) noexcept {
    return (static_cast<std::uint32_t>(rank) * 7 + segment) % kRecent;
  }
  [[nodiscard]] KnownSegment* look_up(std::int32_t rank, std::uint32_t segment) noexcept;
  [[nodiscard]] KnownSegment* find(std::int32_t rank, std::uint32_t segment) const noexcept;
  /// Null: no memory, or too many are known.
  KnownSegment* add(std::int32_t rank, std::uint32_t segment, Status& why) noexcept;
  void remove(KnownSegment& known) noexcept;
  void fail(KnownSegment& known, Status status) noexcept;
  void open_soon() noexcept;
  static void open_told(void* directory, const OpResult&) noexcept;
  void open(KnownSegment& known) noexcept;
  Status take_ticket(KnownSegment& known, const SegmentTicket& ticket) noexcept;
  Status open_own(KnownSegment& known) noexcept;
  void leave(KnownSegment& known) noexcept;
  void look_at_leaving(KnownSegment& known) noexcept;

  SpaceState& space_;
  std::unordered_map<std::uint64_t, std::unique_ptr<KnownSegment>> known_;
  std::array<KnownSegment*, kRecent> recent_{};
  std::vector<KnownSegment*> unsettled_;  ///< Those that are not open.
  Op opening_;                            ///< Fired where a ticket may be taken, which may wait for its owner.
  bool opens_soon_ = false;
  bool is_closed_ = false;
};

}  // namespace brant
