#include "ops/mover/wire_runs.h"

#include <algorithm>

namespace brant {

Status WireRuns::start(Move& move, const StepEnd& to, const StepEnd& from, std::size_t bytes) noexcept {
  if (move.way->peer.lost) return Status::peer_lost;
  const bool is_put = to.place.over_wire;
  const StepEnd& there = is_put ? to : from;
  Step* const step = steps_.take(*this, move, there, (is_put ? from : to).place.memory(), is_put);
  if (step == nullptr) return steps_.refusal();
  step->left = bytes;
  step->turn = turn_;
  for (Run& run : step->runs) {
    run.step = step;
    run.on_complete = &WireRuns::on_run;
  }
  all_.push_back(*step);
  waits_for_network_ = false;
  engine_.pollers().attach(*this);
  return Status::in_progress;
}

/// Until all runs are posted, so many are under way, the network has no room, or `room` is used up. What has failed
/// posts no more.
void WireRuns::post_some(Step& step, std::size_t& room) noexcept {
  if (step.move.way->peer.lost) step.status = Status::peer_lost;
  for (Run& run : step.runs) {
    while (!run.is_under_way && step.left != 0 && step.status == Status::ok && room != 0) {
      const std::size_t bytes = std::min(step.cursor.together(), step.left);
      const Status status = post(step, run, bytes);
      if (status == Status::limit_reached) return;
      if (status != Status::ok && status != Status::in_progress) {
        step.status = status;
        return;
      }
      step.cursor.advance(bytes);
      step.packed += bytes;
      step.left -= bytes;
      --room;
    }
  }
}

Status WireRuns::post(Step& step, Run& run, std::size_t bytes) noexcept {
  port::RemoteMemory& memory = *engine_.wire().remote_memory();
  const RemoteWay& way = *step.move.way;
  const std::uint64_t address = step.there + static_cast<std::uint64_t>(step.cursor.offset());
  run.visible = false;
  const Status status =
      step.is_put
          ? memory.put(way.peer.endpoint, way.key, address, ConstBuffer(step.packed, bytes, MemoryKind::pinned), run)
          : memory.get(way.peer.endpoint, way.key, address, Buffer(step.packed, bytes, MemoryKind::pinned), run);
  if (status == Status::in_progress) {
    run.is_under_way = true;
    ++step.under_way;
    engine_.progress().note_wire_op(+1);
  } else if (status == Status::ok) {
    step.move.needs_flush |= !run.visible;
  }
  return status;
}

void WireRuns::on_run(port::WireOp& op) noexcept {
  auto& run = static_cast<Run&>(op);
  Step& step = *run.step;
  step.owner.engine_.progress().note_wire_op(-1);
  step.move.needs_flush |= !run.visible;
  run.is_under_way = false;
  --step.under_way;
  step.owner.waits_for_network_ = false;
  if (run.status != Status::ok && step.status == Status::ok) step.status = run.status;
}

/// A step ends here, and not where its last run does: so no run is told of within the post of another one. Those that
/// had their turn go to the end of the list: where there are more runs than one turn posts, the others come next.
unsigned WireRuns::poll() noexcept {
  unsigned events = 0;
  std::size_t room = kRunsATurn;
  ++turn_;
  waits_for_network_ = true;
  const auto had_theirs = [this] { return all_.empty() || all_.front()->turn == turn_; };
  while (room != 0 && !had_theirs()) {
    Step& each = *all_.pop_front();
    each.turn = turn_;
    post_some(each, room);
    const bool is_over = each.under_way == 0 && (each.left == 0 || each.status != Status::ok);
    if (!is_over) {
      waits_for_network_ &= each.waits();
      all_.push_back(each);
      continue;
    }
    Move& move = each.move;
    const Status status = each.status;
    steps_.give_back(&each);
    done_(self_, move, status);
    ++events;
  }
  waits_for_network_ &= had_theirs();
  if (all_.empty()) engine_.pollers().detach(*this);
  return events;
}

}  // namespace brant
