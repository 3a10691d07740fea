#include "ops/coll/ways.h"

#include <utility>

#include "ops/coll/board_rounds.h"
#include "ops/coll/sum_order.h"

namespace brant::coll {
namespace {

/// At once: then others have their turn.
constexpr unsigned kBoardTurnsOfTurn = 16;

}  // namespace

void Ways::share_board(Engine& engine, std::byte* memory, std::span<Peer* const> peers) {
  for (Peer* peer : peers) {
    if (peer != nullptr) others_.push_back(peer);
  }
  reading_.emplace(engine, members_, peers);
  board_.emplace(memory, members_.count, members_.self);
}

void Ways::share_boards(Houses houses, std::byte* memory, std::span<Peer* const> peers) {
  houses_.emplace(std::move(houses), memory, mail_, members_, peers);
}

PlanQuery Ways::query(const Work& work, TeamWay way) const noexcept {
  return {.kind = work.kind,
          .members = members_.count,
          .bytes = work.bytes,
          .element = work.element,
          .board = board_.has_value(),
          .bands = bands_,
          .hosts = houses_.has_value(),
          .houses = houses_ ? houses_->count() : 0,
          .any_order = houses_ && combines_in_any_order(work.folding, order_),
          .uneven = work.uneven,
          .way = way};
}

void Ways::begin(const CallRecord& call) noexcept {
  if (is_of_board(call.plan)) return;
  if (is_of_hosts(call.plan)) return houses_->begin(call.number);
  messages_.begin(call.number);
}

Status Ways::step(CallRecord& call, Fault& fault) noexcept {
  if (call.staging == nullptr) return carry_on(call, fault);
  Status status = call.exchanged ? Status::ok : call.staging->bring();
  if (status == Status::ok && !call.exchanged) {
    status = carry_on(call, fault);
    if (status != Status::ok) return status;
    call.exchanged = true;
  }
  if (status == Status::ok) status = call.staging->take_back();
  if (status != Status::ok && status != Status::in_progress) {
    fault.why = Fault::Why::device;
    fault.member = members_.self;
  }
  return status;
}

Status Ways::carry_on(CallRecord& call, Fault& fault) noexcept {
  if (is_of_board(call.plan)) return step_on_board(call, fault);
  if (is_of_hosts(call.plan)) return houses_->step(call.work, call.plan, fault);
  return messages_.step(call.work, call.plan, fault);
}

void Ways::put(CallRecord& call) noexcept {
  if (call.plan.algorithm == Algorithm::reads) return reading_->put(*board_, call.work, call.round);
  BoardRounds(*board_, members_, call.work, call.plan).put(call.round);
}

bool Ways::take(CallRecord& call) noexcept {
  using Next = Reading::Next;
  if (call.plan.algorithm != Algorithm::reads) {
    BoardRounds rounds(*board_, members_, call.work, call.plan);
    rounds.take(call.round);
    if (call.work.uneven && call.round == 0) call.plan.rounds = rounds.rounds();
    ++call.round;
    return true;
  }
  const Next next = reading_->take(*board_, call.work, call.plan, call.round);
  if (next == Next::wait) return false;
  ++call.round;
  if (next == Next::give_up) {
    call.plan = plan_for(without_reads(query(call.work, TeamWay::automatic)));
    call.round = 0;
  }
  if (next == Next::give_up || call.round == call.plan.rounds) reading_->end();
  return true;
}

Status Ways::step_on_board(CallRecord& call, Fault& fault) noexcept {
  TurnBoard& board = *board_;
  for (unsigned turns = 0; turns < kBoardTurnsOfTurn; ++turns) {
    if (!call.published) {
      put(call);
      board.publish(call.work.words);
      call.published = true;
      for (const Peer* peer : others_) peer->link->wake();
    }
    if (const Status status = board.meet(call.work.words, fault); status != Status::ok) return status;
    if (!take(call)) return Status::in_progress;
    board.end_turn();
    call.published = false;
    if (call.round == call.plan.rounds) return Status::ok;
  }
  return Status::in_progress;
}

std::uint64_t Ways::moved(const CallRecord& call) const noexcept {
  if (is_of_board(call.plan)) return board_->turn();
  return is_of_hosts(call.plan) ? houses_->moved() : messages_.moved();
}

unsigned Ways::awaited(const CallRecord& call) const noexcept {
  if (is_of_hosts(call.plan)) return houses_->awaited();
  return is_of_board(call.plan) ? board_->awaited() : messages_.awaited();
}

bool Ways::lets_sleep(const CallRecord& call) const noexcept {
  if (call.staging != nullptr && !call.staging->is_there()) return false;
  if (is_of_hosts(call.plan)) return houses_->lets_sleep();
  if (!is_of_board(call.plan)) return !messages_.is_blocked() && mail_.front(messages_.awaited()) == nullptr;
  return call.published && !board_->is_here(awaited(call));
}

void Ways::abandon() noexcept {
  if (board_) board_->desert();
  if (houses_) houses_->desert();
  if (reading_) reading_->end();
  messages_.drop_held();
}

}  // namespace brant::coll
