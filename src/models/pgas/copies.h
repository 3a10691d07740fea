#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/object_pool.h"
#include "brant/ops/rma.h"
#include "core/pollers.h"
#include "models/pgas/copy_record.h"

namespace brant {

class SpaceState;
struct KnownSegment;

/// Copies of the global space that take a record, from their post to their end:
/// reached (all segments) -> moved (by this process, or by the owner of the source) -> fenced (AtTarget::behind_all)
/// -> told (AtTarget) -> ended.
/// Where one that was accepted finds no room on its way, it waits and tries again.
class Copies final : private Poller {
 public:
  static constexpr std::size_t kCopiesMax = 65536;

  explicit Copies(SpaceState& space) noexcept : space_(space) {}
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;
  ~Copies();

  /// Null: see `refusal`. For `start`, which gives it back where it answers anything but in_progress.
  [[nodiscard]] CopyRecord* take(Op& op) noexcept;
  [[nodiscard]] Status refusal() const noexcept { return records_.refusal(); }
  /// The record says what is to be copied. The outcome is that of a post.
  Status start(CopyRecord& copy, Op& op) noexcept;

  /// A segment that the copy waited for is reached, or (not ok) never will be.
  void go_on(CopyRecord& copy, Status status) noexcept;
  void note_copied(std::int32_t from, std::uint64_t id, Status status) noexcept;
  /// Processes that copy on behalf of this one may have died or ended.
  void look_around() noexcept;
  /// Ends what others copy, and what waits for room.
  void close() noexcept;
  [[nodiscard]] std::size_t live() const noexcept { return records_.lent(); }
  /// Some that write to a process have not ended.
  [[nodiscard]] bool any_to(std::int32_t rank) noexcept { return any_before(nullptr, rank); }

 private:
  /// As `any_to`, of those that were posted before `fence`.
  [[nodiscard]] bool any_before(const CopyRecord* fence, std::int32_t rank) noexcept;
  void give_back(CopyRecord& copy) noexcept;
  void let_go(CopyRecord& copy) noexcept;
  void begin_fence(CopyRecord& fence) noexcept;
  void look_at_fences() noexcept;
  Status reach(CopyRecord& copy, GlobalPtr<const std::byte> at, KnownSegment*& known) noexcept;
  Status reach_flag(CopyRecord& copy) noexcept;
  void proceed(CopyRecord& copy) noexcept;
  void move(CopyRecord& copy) noexcept;
  void move_between(CopyRecord& copy, KnownSegment& from, KnownSegment& to) noexcept;
  void post(CopyRecord& copy, KnownSegment& known, Buffer local, bool is_put) noexcept;
  WordBehind word_behind(CopyRecord& copy, const KnownSegment& known, Buffer local) noexcept;
  void perform(CopyRecord& copy, KnownSegment& known) noexcept;
  void ask_owner(CopyRecord& copy) noexcept;
  void moved(CopyRecord& copy, const OpResult& result) noexcept;
  void tell(CopyRecord& copy) noexcept;
  void tell_behind_all(CopyRecord& copy) noexcept;
  void wait_for_room(CopyRecord& copy) noexcept;
  void try_again(CopyRecord& copy) noexcept;
  unsigned poll() noexcept override;
  void end(CopyRecord& copy, Status status) noexcept;
  static void on_tell(void* copy, const OpResult&) noexcept;
  static void on_moved(void* copy, const OpResult& result) noexcept;
  static void on_source_free(void* copy, const OpResult& result) noexcept;
  static void on_cancel(OpOwner& owner) noexcept;

  SpaceState& space_;
  ObjectPool<CopyRecord> records_{kCopiesMax};
  IntrusiveList<CopyRecord, &CopyRecord::post_hook> posted_;
  IntrusiveList<CopyRecord, &CopyRecord::hook> fences_;   ///< Those, and copies, that wait for earlier copies.
  IntrusiveList<CopyRecord, &CopyRecord::hook> refused_;  ///< That wait for room.
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::uint64_t, CopyRecord*> elsewhere_;  ///< What others copy, by id.
};

}  // namespace brant
