#include "ops/mover/flusher.h"

namespace brant {

Status Flusher::post() noexcept {
  if (peer_.lost) return Status::peer_lost;
  op_.on_complete = &Flusher::on_flushed;
  const Status status = engine_.wire().remote_memory()->flush(peer_.endpoint, op_);
  if (status == Status::in_progress) {
    under_way_ = true;
    engine_.progress().note_wire_op(+1);
  }
  return status;
}

Status Flusher::flush(Move& move) noexcept {
  if (under_way_ || !waiting_.empty()) {
    waiting_.push_back(move);
    return Status::in_progress;
  }
  const Status status = post();
  if (status == Status::in_progress) {
    covered_.push_back(move);
  } else if (status == Status::limit_reached) {
    waiting_.push_back(move);
    engine_.pollers().attach(*this);
    return Status::in_progress;
  }
  return status;
}

void Flusher::end(Moves& moves, Status status) noexcept {
  while (Move* move = moves.pop_front()) done_(context_, *move, status);
}

/// Those that wait are covered by a flush that is posted now, or end.
void Flusher::post_for_waiting() noexcept {
  if (waiting_.empty()) return;
  const Status status = post();
  if (status == Status::limit_reached) return engine_.pollers().attach(*this);
  Moves these;
  while (Move* move = waiting_.pop_front()) {
    (status == Status::in_progress ? covered_ : these).push_back(*move);
  }
  end(these, status);
}

void Flusher::on_flushed(port::WireOp& op) noexcept {
  Flusher& self = *static_cast<FlushOp&>(op).owner;
  const Status status = op.status;  // the record may be posted again below
  self.under_way_ = false;
  self.engine_.progress().note_wire_op(-1);
  Moves ended;
  while (Move* move = self.covered_.pop_front()) ended.push_back(*move);
  self.post_for_waiting();
  self.end(ended, status);
}

unsigned Flusher::poll() noexcept {
  engine_.pollers().detach(*this);
  post_for_waiting();
  return 1;
}

}  // namespace brant
