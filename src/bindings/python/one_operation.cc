#include "bindings/python/one_operation.h"

#include "bindings/python/process.h"

namespace brant::python {

void OneOperation::on_ended(void* self, const OpResult& result) noexcept {
  auto& operation = *static_cast<OneOperation*>(self);
  operation.outcome_ = result;
  operation.pending_ = false;
  Process::get().ended(operation);
}

void OneOperation::started(Status posted, double seconds) {
  if (posted == Status::in_progress) {
    pending_ = true;
    hold();
    if (seconds >= 0) set_deadline(seconds);
    return;
  }
  outcome_ = {posted, op_.result.bytes};
  finish();
  answer();
}

void OneOperation::advance() {
  if (pending_) {
    if (is_overdue() && !has_answer()) give_up(Status::timed_out);
    return;
  }
  finish();
  answer();
  release();
}

void OneOperation::give_up(Status status) {
  given_up_ = status;
  answer();
}

}  // namespace brant::python
