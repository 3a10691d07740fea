#include "core/completions.h"

#include "base/log.h"
#include "core/batch_time.h"

namespace brant {

void Completions::report(OpOwner& owner, Moment moment, const OpResult& result) noexcept {
  Op* op = owner.op_;
  if (op == nullptr) return;
  const Completion& sink = moment == Moment::source_free ? op->source_free : op->delivered;
  if (sink.fire == nullptr) return;
  op->result = result;
  if (op->due_ == 0) {
    pending_.remove(*op);
    ready_.push_back(*op);
  }
  op->due_ = static_cast<std::uint8_t>(op->due_ | (1u << static_cast<unsigned>(moment)));
}

/// Every moment that has a sink. False: there is none.
bool Completions::make_due(Op& op) noexcept {
  if (op.source_free.fire != nullptr) op.due_ |= 1u << static_cast<unsigned>(Moment::source_free);
  if (op.delivered.fire != nullptr) op.due_ |= 1u << static_cast<unsigned>(Moment::delivered);
  return op.due_ != 0;
}

void Completions::complete(Op& op, const OpResult& result) noexcept {
  op.result = result;
  if (!make_due(op)) return;
  op.completions_ = this;
  ready_.push_back(op);
}

void Completions::finish(OpOwner& owner, const OpResult& result) noexcept {
  Op* op = owner.op_;
  if (op == nullptr) return;
  --owned_;
  counters_.count_outcome(result.status);
  op->result = result;
  op->owner_ = nullptr;
  owner.op_ = nullptr;
  if (op->due_ != 0) {
    make_due(*op);
    return;
  }
  pending_.remove(*op);
  if (make_due(*op)) {
    ready_.push_back(*op);
  } else {
    op->completions_ = nullptr;
  }
}

void Completions::detach(Op& op) noexcept {
  (op.due_ != 0 ? ready_ : pending_).remove(op);
  op.due_ = 0;
  OpOwner* owner = op.owner_;
  op.owner_ = nullptr;
  op.completions_ = nullptr;
  if (owner == nullptr) return;
  --owned_;
  owner->op_ = nullptr;
  owner->cancel(*owner);
}

unsigned Completions::fire(unsigned limit) noexcept {
  unsigned fired = 0;
  BatchTime time;
  for (; fired < limit; ++fired) {
    Op* op = ready_.front();
    if (op == nullptr || time.over(fired)) break;
    // One moment at a time: while one sink runs, the other still stands in the record, and goes with it.
    const bool source_free = (op->due_ & 1u) != 0;
    op->due_ = static_cast<std::uint8_t>(op->due_ & (source_free ? ~1u : ~2u));
    if (op->due_ == 0) {
      ready_.remove(*op);
      if (op->owner_ == nullptr) {
        op->completions_ = nullptr;
      } else {
        pending_.push_back(*op);
      }
    }
    // A sink fired once is taken off: neither moment is reported twice, and the record may be posted again by the last
    // sink.
    const Completion sink = std::exchange(source_free ? op->source_free : op->delivered, {});
    const OpResult result = op->result;
    if (sink.fire != nullptr) sink.fire(sink.self, result);
  }
  return fired;
}

/// A sink would run on a runtime that can no longer be used, and what it points to may have gone before.
void Completions::release() noexcept {
  release(ready_);
  release(pending_);
}

void Completions::release(OpList& ops) noexcept {
  while (Op* op = ops.pop_front()) {
    op->completions_ = nullptr;
    if (op->due_ == 0) op->result = {Status::canceled, 0};  // else its outcome is known, and only was not told
    op->due_ = 0;
    if (OpOwner* owner = std::exchange(op->owner_, nullptr)) owner->op_ = nullptr;
  }
}

Status refuse_pending_op() noexcept {
  log::error(
      "a record of an operation (Op) was posted while it is pending: refused, and the first post goes on. Use "
      "one record for each operation under way, and post it again after its last sink has fired");
  return Status::invalid_argument;
}

void Op::detach() noexcept {
  if (completions_ != nullptr) completions_->detach(*this);
}

void Op::cancel() noexcept {
  if (owner_ != nullptr) owner_->cancel(*owner_);
}

}  // namespace brant
