#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/object_pool.h"
#include "models/pgas/copy_record.h"

namespace brant {

class SpaceState;
struct KnownSegment;

/// Copies of the global space that take a record, from their post to their end:
/// reached (both segments) -> moved (by this process, or by the owner of the source) -> told (AtTarget) -> ended.
class Copies {
 public:
  static constexpr std::size_t kCopiesMax = 65536;

  explicit Copies(SpaceState& space) noexcept : space_(space) {}
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

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
  /// Ends what others copy.
  void close() noexcept;
  [[nodiscard]] std::size_t live() const noexcept { return records_.lent(); }

 private:
  Status reach(CopyRecord& copy, GlobalPtr<const std::byte> at, KnownSegment*& known) noexcept;
  void proceed(CopyRecord& copy) noexcept;
  void move(CopyRecord& copy) noexcept;
  void move_between(CopyRecord& copy, KnownSegment& from, KnownSegment& to) noexcept;
  void post(CopyRecord& copy, KnownSegment& known, Buffer local, bool is_put) noexcept;
  void perform(CopyRecord& copy, KnownSegment& known) noexcept;
  void ask_owner(CopyRecord& copy) noexcept;
  void moved(CopyRecord& copy, const OpResult& result) noexcept;
  void tell(CopyRecord& copy) noexcept;
  void end(CopyRecord& copy, Status status) noexcept;
  static void on_tell(void* copy, const OpResult&) noexcept;
  static void on_moved(void* copy, const OpResult& result) noexcept;
  static void on_source_free(void* copy, const OpResult& result) noexcept;
  static void on_cancel(OpOwner& owner) noexcept;

  SpaceState& space_;
  ObjectPool<CopyRecord> records_{kCopiesMax};
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::uint64_t, CopyRecord*> elsewhere_;  ///< What others copy, by id.
};

}  // namespace brant
