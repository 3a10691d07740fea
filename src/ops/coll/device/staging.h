#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "ops/coll/extent.h"
#include "ops/coll/work.h"
#include "ops/mover/mover.h"

namespace brant::coll {

struct CallRecord;

/// What a call's two buffers are. A kind that the CPU does not reach is staged.
struct Sides {
  MemoryKind in = MemoryKind::host;
  MemoryKind out = MemoryKind::host;

  [[nodiscard]] bool any() const noexcept { return !host_accessible(in) || !host_accessible(out); }
};

/// What memory the buffers of a call are. Null memory, or less of it than the call says: invalid_argument, and the log
/// says it.
Status look_at_memory(MemoryKinds& kinds, const Collective& call, const Work& work, const std::string& team,
                      Sides& sides) noexcept;

/// A call with buffers in device memory is carried out in pinned memory. This brings there what the member gives, and
/// back what it gets. Which member does so is nobody else's business: the plan does not depend on it, so that members
/// with memory of any kinds act together, and the CPU combines elements, with the same bits.
///
/// A copy under way outlives a call that fails: `end_later` then ends the call's record when the copy is over.
class Staging {
 public:
  /// Ends a record whose call ended while a copy was under way. The record gives the staging back.
  using EndRecord = void (*)(void* context, CallRecord& record) noexcept;

  Staging(Mover& mover, EndRecord end, void* context) noexcept
      : mover_(mover), stages_(mover.stages()), end_(end), context_(context) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  /// No copy is under way.
  ~Staging() { stages_->give_back(lease_); }

  /// Takes pinned memory for the call, and lets `work` work there. no_memory.
  Status prepare(const Members& members, const Sides& sides, Work& work) noexcept;
  /// To be called until it is ok: what the member gives is in pinned memory. in_progress, or what the device reports.
  Status bring() noexcept;
  /// The same of what it gets, once the call was carried out.
  Status take_back() noexcept;

  [[nodiscard]] bool is_there() const noexcept { return phase_ == Phase::there; }
  [[nodiscard]] bool is_busy() const noexcept { return under_way_ != 0; }
  void end_later(CallRecord& record) noexcept { record_ = &record; }

 private:
  enum class Phase : std::uint8_t { before, bringing, there, returning, done };
  struct Leg final : Move {
    explicit Leg(Staging& owner_in) noexcept : Move(kEvents), owner(owner_in) {}
    Staging& owner;
  };

  static const MoveEvents kEvents;

  void start(Leg& leg, MoveEnd from, MoveEnd to, std::uint64_t bytes) noexcept;
  static void ended(Move& move, Status status) noexcept;

  Mover& mover_;
  const std::shared_ptr<StagePool> stages_;  ///< It may outlive the mover.
  const EndRecord end_;
  void* const context_;
  StagePool::Lease lease_;
  Phase phase_ = Phase::before;
  unsigned under_way_ = 0;
  Status failed_ = Status::ok;
  CallRecord* record_ = nullptr;

  MoveEnd in_;  ///< The program's memory; null: not staged.
  std::byte* pinned_in_ = nullptr;
  std::uint64_t in_bytes_ = 0;
  MoveEnd out_;
  std::byte* pinned_out_ = nullptr;
  std::uint64_t out_bytes_ = 0;
  Extent brought_;  ///< Of `out`, before the call.
  bool takes_back_ = false;
  Leg in_leg_{*this};
  Leg out_leg_{*this};
};

}  // namespace brant::coll
