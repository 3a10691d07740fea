#pragma once

#include <cstddef>
#include <utility>

#include "brant/base/intrusive_list.h"
#include "brant/core/op.h"
#include "core/observe/counters.h"

namespace brant {

class Completions;

/// What a layer keeps for each operation it works on; the way back from an `Op`.
class OpOwner {
 public:
  OpOwner() = default;
  OpOwner(const OpOwner&) = delete;
  OpOwner& operator=(const OpOwner&) = delete;

  /// Withdraws the operation if that is possible; the outcome comes as a completion.
  void (*cancel)(OpOwner& self) noexcept = nullptr;

  void own(Completions& completions, Op& op) noexcept;
  /// Works on the operation of another record from now on, which lets it go.
  void take_over(OpOwner& other) noexcept {
    op_ = std::exchange(other.op_, nullptr);
    if (op_ != nullptr) op_->owner_ = this;
  }
  /// False once the caller took its record back (`Op::detach`): its buffers may be gone.
  [[nodiscard]] bool observed() const noexcept { return op_ != nullptr; }

 private:
  friend class Completions;
  Op* op_ = nullptr;  ///< Null once detached or fully reported.
};

/// For a post that was handed a record which is pending: says so in the log, and leaves the record alone.
Status refuse_pending_op() noexcept;

/// The operations of users that are under way: which of their moments are due, and the one place where sinks are fired.
class Completions {
 public:
  explicit Completions(Counters& counters) noexcept : counters_(counters) {}
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  /// Reports a moment of an operation: its sink is fired by progress, after the network engine has run.
  void report(OpOwner& owner, Moment moment, const OpResult& result) noexcept;
  /// Reports every wanted moment that was not reported yet, and lets the operation go.
  void finish(OpOwner& owner, const OpResult& result) noexcept;
  /// The same for an operation that no layer owns, and which is not pending: for what ended where no sink may be fired.
  void complete(Op& op, const OpResult& result) noexcept;
  void detach(Op& op) noexcept;

  /// Fires at most `limit` sinks, and no longer than a `BatchTime`. Returns how many.
  unsigned fire(unsigned limit) noexcept;
  /// Lets go of all operations and fires nothing: their owners may look at them after the engine has gone.
  void release() noexcept;

  /// There are some that were not told yet.
  [[nodiscard]] bool due() const noexcept { return !ready_.empty(); }
  /// How many operations a layer works on.
  [[nodiscard]] std::size_t pending() const noexcept { return owned_; }

 private:
  friend class OpOwner;
  using OpList = IntrusiveList<Op, &Op::completions_hook_>;

  static bool make_due(Op& op) noexcept;
  static void release(OpList& ops) noexcept;

  Counters& counters_;
  OpList ready_;    ///< A moment of each is due.
  OpList pending_;  ///< The other operations of users that have not ended.
  std::size_t owned_ = 0;
};

inline void OpOwner::own(Completions& completions, Op& op) noexcept {
  op_ = &op;
  op.completions_ = &completions;
  op.owner_ = this;
  op.due_ = 0;
  completions.pending_.push_back(op);
  ++completions.owned_;
}

}  // namespace brant
