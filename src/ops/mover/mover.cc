#include "ops/mover/mover.h"

#include <algorithm>
#include <utility>

namespace brant {
namespace {

/// By way of a pinned buffer: two steps each piece.
bool is_staged(const Move& move) noexcept { return move.stage.data != nullptr; }

/// An end as a step finds it that begins behind the bytes that have been moved.
StepEnd end_of_step(const Move& move, const MoveEnd& end, Shape TransferShapes::* side,
                    RunMark RunMarks::* mark) noexcept {
  StepEnd here{end};
  const Shape* shape = move.shapes != nullptr ? &(move.shapes->*side) : nullptr;
  if (shape != nullptr && shape->form() == Shape::Form::contiguous) {
    here.place.address += shape->first();
  } else {
    here.shape = shape;
    if (move.marks != nullptr) here.mark = &(move.marks->*mark);
  }
  here.advance(move.moved);
  return here;
}

StepEnd from_of(const Move& move) noexcept {
  return end_of_step(move, move.from, &TransferShapes::from, &RunMarks::from);
}
StepEnd to_of(const Move& move) noexcept { return end_of_step(move, move.to, &TransferShapes::to, &RunMarks::to); }

bool on_host(const StepEnd& end) noexcept { return host_accessible(end.place.kind); }

}  // namespace

Mover::Mover(Engine& engine)
    : engine_(engine),
      stages_(std::make_shared<StagePool>(engine)),
      kernels_(engine.device()),
      device_copier_(engine, kernels_, {&Mover::copied, this}),
      stager_(engine, {&Mover::copied, this}),
      shaped_copier_(engine, kernels_, {&Mover::copied, this}),
      cpu_copier_(
          engine,
          [](void* self, Move& move, Status status) noexcept { static_cast<Mover*>(self)->step_ended(move, status); },
          this),
      wire_runs_(
          engine,
          [](void* self, Move& move, Status status) noexcept { static_cast<Mover*>(self)->step_ended(move, status); },
          this) {}

Mover::~Mover() { engine_.pollers().detach(*this); }

void Mover::prepare(Peer& peer) {
  std::unique_ptr<Flusher>& flusher = flushers_[peer.rank.value];
  if (flusher) return;
  flusher = std::make_unique<Flusher>(
      engine_, peer,
      [](void* self, Move& move, Status status) noexcept { static_cast<Mover*>(self)->end(move, status); }, this);
}

bool Mover::forget(Peer& peer) noexcept {
  const auto flusher = flushers_.find(peer.rank.value);
  if (flusher == flushers_.end()) return true;
  if (flusher->second->busy()) return false;
  flushers_.erase(flusher);
  return true;
}

Status Mover::start(Move& move) noexcept {
  move.moved = 0;
  move.leaving = move.source_is_free = move.signaled = false;
  if (move.shapes != nullptr) {
    if (!can_shape(move)) return Status::not_supported;
    kernels_.open();
    take_marks(move);
  }
  if (move.path == Path::staged) {
    const Result<StagePool::Lease> lease = stages_->take(std::min(move.bytes, kPieceBytes));
    if (!lease) {
      give_back(move);
      return lease.status();
    }
    move.stage = *lease;
  }
  const Status status = advance(move);
  if (status != Status::in_progress) give_back(move);
  return status;
}

/// The network carries runs from and to a packed buffer, and kernels reach no host memory that is not pinned.
bool Mover::can_shape(const Move& move) noexcept {
  const StepEnd from = from_of(move), to = to_of(move);
  if (from.shape == nullptr && to.shape == nullptr) return true;
  if (from.place.over_wire || to.place.over_wire) return move.path == Path::staged;
  const bool pageable = from.place.kind == MemoryKind::host || to.place.kind == MemoryKind::host;
  const bool by_device = !on_host(from) || !on_host(to);
  return move.path == Path::staged || !by_device || !pageable;
}

Status Mover::start_staging(Move& move) noexcept {
  move.moved = 0;
  const auto direction = host_accessible(move.to.kind) ? Stager::Direction::out : Stager::Direction::in;
  return stage(move, direction, {move.to}, {move.from}, move.bytes);
}

/// Without memory for them each step walks from the first run.
void Mover::take_marks(Move& move) noexcept {
  constexpr Shape::Form kList = Shape::Form::indexed;
  if (move.shapes->from.form() == kList || move.shapes->to.form() == kList) move.marks = marks_.take();
}

void Mover::give_back(Move& move) noexcept {
  stages_->give_back(std::exchange(move.stage, {}));
  if (move.marks != nullptr) marks_.give_back(std::exchange(move.marks, nullptr));
}

bool Mover::withdraw(Move& move) noexcept {
  if (std::holds_alternative<Move::Refused>(move.step)) {
    refused_.remove(move);
    move.step = {};
  } else if (!cpu_copier_.withdraw(move)) {
    return false;
  }
  give_back(move);
  return true;
}

std::size_t Mover::redirect(Move& move, void* to) noexcept {
  auto* const step = std::get_if<Move::ByCpu>(&move.step);
  if (step == nullptr || is_staged(move)) return 0;
  if (move.shapes != nullptr && move.shapes->from.form() != Shape::Form::contiguous) return 0;
  const std::size_t copied = move.bytes - step->left;
  move.shapes = nullptr;  // of what is to come this step alone knows
  move.to = MoveEnd(to, move.to.kind);
  step->to = {move.to};
  step->to.advance(copied);
  return copied;
}

Status Mover::advance(Move& move) noexcept {
  for (;;) {
    const Status status = start_step(move);
    if (status != Status::ok) return status;
    if (note_step(move)) return all_moved(move);
  }
}

/// The same whenever it is asked for during a step.
std::size_t Mover::step_bytes(const Move& move) const noexcept {
  const std::size_t left = move.bytes - move.moved;
  const std::size_t bytes = is_staged(move) ? std::min(left, kPieceBytes) : left;
  if (move.shapes == nullptr) return bytes;
  StepEnd to = to_of(move), from = from_of(move);
  if (on_host(to) && on_host(from)) return bytes;
  for (StepEnd* end : {&to, &from}) {
    // That half is the CPU's, or the network's.
    if (is_staged(move) && (on_host(*end) || end->place.over_wire)) end->shape = nullptr;
  }
  return shaped_copier_.step_bytes(to, from, bytes);
}

/// The step has ended. True: it was the last one.
bool Mover::note_step(Move& move) const noexcept {
  if (is_staged(move)) {
    move.leaving = !move.leaving;
    if (move.leaving) return false;
  }
  move.moved += step_bytes(move);
  return move.moved == move.bytes;
}

Status Mover::start_step(Move& move) noexcept {
  const StepEnd from = from_of(move), to = to_of(move);
  const std::size_t bytes = step_bytes(move);
  if (!is_staged(move)) return copy(move, to, from, bytes);
  const StepEnd buffer{MoveEnd(move.stage.data, MemoryKind::pinned)};
  return move.leaving ? copy(move, to, buffer, bytes) : copy(move, buffer, from, bytes);
}

Status Mover::copy(Move& move, const StepEnd& to, const StepEnd& from, std::size_t bytes) noexcept {
  const bool shaped = to.shape != nullptr || from.shape != nullptr;
  if (to.place.over_wire || from.place.over_wire)
    return shaped ? wire_runs_.start(move, to, from, bytes) : by_wire(move, to.place, from.place, bytes);
  if (on_host(to) && on_host(from)) return cpu_copier_.start(move, {to, from, bytes});
  return shaped ? by_shaped_copier(move, to, from, bytes) : by_device(move, to, from, bytes);
}

Status Mover::by_shaped_copier(Move& move, const StepEnd& to, const StepEnd& from, std::size_t bytes) noexcept {
  if (!is_staged(move)) move.path = Path::copy_engine;
  const Status status = shaped_copier_.start(to, from, bytes, device_step(move));
  if (status == Status::ok) return Status::in_progress;
  move.step = {};
  return status;
}

DeviceCopy& Mover::device_step(Move& move) noexcept {
  auto& step = move.step.emplace<Move::ByDevice>();
  step.move = &move;
  return step;
}

void Mover::copied(void* mover, DeviceCopy& copy, Status status) noexcept {
  Move& move = *static_cast<Move::ByDevice&>(copy).move;
  move.signaled = copy.flag != nullptr;
  if (copy.path != Path::automatic && !is_staged(move)) move.path = copy.path;
  static_cast<Mover*>(mover)->step_ended(move, status);
}

Status Mover::by_device(Move& move, const StepEnd& to, const StepEnd& from, std::size_t bytes) noexcept {
  if (is_staged(move)) {
    const bool by_courier =
        bytes <= std::min(device_copier_.courier_bytes(), move.leaving ? kCourierFromHost : kCourierToHost);
    if (!by_courier) return stage(move, move.leaving ? Stager::Direction::in : Stager::Direction::out, to, from, bytes);
  }
  DeviceCopy& step = device_step(move);
  step.alone = on_host(to) || on_host(from);
  if (!is_staged(move) || move.leaving) step.want(move.signal);
  const Path wanted = is_staged(move) ? Path::courier : move.path;
  const Path taken = device_copier_.start(to.place.memory(), from.place.memory(), bytes, step, wanted);
  if (!is_staged(move)) move.path = taken;
  return Status::in_progress;
}

Status Mover::stage(Move& move, Stager::Direction direction, const StepEnd& to, const StepEnd& from,
                    std::size_t bytes) noexcept {
  const Status status = stager_.start(direction, to.place.memory(), from.place.memory(), bytes, device_step(move));
  if (status == Status::ok) return Status::in_progress;
  move.step = {};
  return status;
}

Status Mover::by_wire(Move& move, const MoveEnd& to, const MoveEnd& from, std::size_t bytes) noexcept {
  if (move.way->peer.lost) return Status::peer_lost;
  auto& step = move.step.emplace<Move::ByWire>();
  step.mover = this;
  step.move = &move;
  step.on_complete = [](port::WireOp& op) noexcept {
    auto& ended = static_cast<Move::ByWire&>(op);
    Mover& mover = *ended.mover;
    mover.engine_.progress().note_wire_op(-1);
    ended.move->needs_flush |= !op.visible;
    mover.step_ended(*ended.move, op.status);
  };
  port::RemoteMemory& memory = *engine_.wire().remote_memory();
  const Status status = to.over_wire ? memory.put(move.way->peer.endpoint, move.way->key, to.address,
                                                  ConstBuffer(from.memory(), bytes, from.kind), step)
                                     : memory.get(move.way->peer.endpoint, move.way->key, from.address,
                                                  Buffer(to.memory(), bytes, to.kind), step);
  if (status == Status::in_progress) {
    engine_.progress().note_wire_op(+1);
  } else {
    move.needs_flush |= !step.visible;
    move.step = {};
  }
  return status;
}

Status Mover::all_moved(Move& move) noexcept {
  if (!move.to.over_wire || !move.tells_visible || !move.needs_flush) return Status::ok;
  move.source_is_free = true;
  return flushers_.at(move.way->peer.rank.value)->flush(move);
}

Status Mover::flush(Move& move) noexcept {
  const auto flusher = flushers_.find(move.way->peer.rank.value);
  const bool is_used = flusher != flushers_.end() && move.way->peer.endpoint != nullptr;
  return is_used ? flusher->second->flush(move) : Status::ok;
}

void Mover::step_ended(Move& move, Status status) noexcept {
  move.step = {};
  if (status == Status::ok && move.way != nullptr && move.way->peer.lost) status = Status::peer_lost;
  if (status == Status::ok) status = note_step(move) ? all_moved(move) : advance(move);
  go_on(move, status);
}

void Mover::go_on(Move& move, Status status) noexcept {
  if (status == Status::in_progress) {
    if (move.source_is_free && move.events->source_free != nullptr) move.events->source_free(move);
  } else if (status == Status::limit_reached) {
    move.step.emplace<Move::Refused>();
    refused_.push_back(move);
    engine_.pollers().attach(*this);
  } else {
    end(move, status);
  }
}

void Mover::end(Move& move, Status status) noexcept {
  give_back(move);
  move.events->ended(move, status);
}

unsigned Mover::poll() noexcept {
  engine_.pollers().detach(*this);
  IntrusiveList<Move, &Move::hook> these;
  while (Move* move = refused_.pop_front()) these.push_back(*move);
  unsigned events = 0;
  while (Move* move = these.pop_front()) {
    move->step = {};
    go_on(*move, advance(*move));
    ++events;
  }
  return events;
}

}  // namespace brant
