#include "models/mpi/shared/shared_team.h"

#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "brant/core/runtime.h"
#include "core/engine.h"
#include "core/told_at_once.h"
#include "ops/coll/call_words.h"
#include "ops/coll/table.h"

namespace brant::mpi {
namespace {

constexpr std::size_t kCallsAtFirst = 4;  // a power of two, as are all numbers of calls that there is room for

/// Of a graph each knows what concerns itself, and sizes only where it has edges.
bool same_words(const coll::Work& a, const coll::Work& b) noexcept {
  if (a.kind != b.kind || a.uneven != b.uneven || a.element != b.element) return false;
  if (a.kind == CollectiveKind::neighbour_allgather || a.kind == CollectiveKind::neighbour_alltoall) return true;
  return a.words == b.words;
}

Status carry_on_kind(const SharedStep& step) {
  switch (step.call.common().kind) {
    case CollectiveKind::barrier:
      return step.begins() && !step.placement.alone() ? step.ask_team(barrier()) : Status::ok;
    case CollectiveKind::broadcast: return carry_on_broadcast(step);
    case CollectiveKind::reduce:
    case CollectiveKind::allreduce: return carry_on_reduction(step);
    case CollectiveKind::allgather: return carry_on_allgather(step);
    case CollectiveKind::reduce_scatter: return carry_on_reduce_scatter(step);
    case CollectiveKind::alltoall: return carry_on_alltoall(step);
    case CollectiveKind::gather: return carry_on_gather(step);
    case CollectiveKind::scatter: return carry_on_scatter(step);
    case CollectiveKind::scan:
    case CollectiveKind::exscan: return carry_on_prefixes(step);
    case CollectiveKind::neighbour_allgather:
    case CollectiveKind::neighbour_alltoall: return carry_on_neighbours(step);
    case CollectiveKind::none: break;
  }
  return Status::internal;
}

}  // namespace

SharedTeam::SharedTeam(Runtime& runtime, std::vector<unsigned> process_of, unsigned own, Team team)
    : engine_(runtime.worker().engine()),
      table_(engine_.service<TeamTable>()),
      placement_(std::move(process_of), own),
      team_(std::move(team)),
      name_(team_.is_open() ? team_.name() : "of one process"),
      posted_(placement_.ranks_here().size(), 0) {
  const unsigned processes = team_.is_open() ? static_cast<unsigned>(team_.size()) : 1;
  const unsigned self = team_.is_open() ? static_cast<unsigned>(team_.rank()) : 0;
  if (processes != placement_.processes() || self != own)
    throw Error(Status::invalid_argument,
                fmt::format("a communicator in {} processes, this one being number {}, with a team of {} of which this "
                            "one is member {}: give the team of those processes, in their order",
                            placement_.processes(), own, processes, self));
}

std::string SharedTeam::fault() const {
  if (fault_.empty() && team_.is_open()) return team_.fault();
  return fault_;
}

Status SharedTeam::post(unsigned member, const Collective& call, brant::Op& op) noexcept {
  if (op.pending()) return refuse_pending_op();
  if (ended_ != Status::ok) return told_at_once(ended_, op);
  if (member >= placement_.members() || !placement_.is_here(member)) {
    log::error("communicator {}: member {} of {} does not live in this process", name_, member, placement_.members());
    return told_at_once(Status::invalid_argument, op);
  }
  const std::size_t index = placement_.index_of(member);
  coll::CallRecord* record = table_.calls().take();
  if (record == nullptr) return told_at_once(Status::limit_reached, op);
  Status status = admit(member, call, *record);
  SharedCall* shared = status == Status::ok ? next_call_of(index, status) : nullptr;
  if (shared == nullptr) {
    table_.drop(*record);
    table_.calls().give_back(record);
    return told_at_once(status, op);
  }
  record->pooled = true;
  record->own(engine_.completions(), op);
  join(*shared, index, *record);
  if (shared == &call_of(first_number_)) drive();
  if (end_number_ > last_number_ && ended_ == Status::ok) [[unlikely]]
    fail_without_who_left();
  return Status::in_progress;
}

void SharedTeam::leave(unsigned member) noexcept {
  const std::uint64_t number = posted_[placement_.index_of(member)];
  if (number >= last_number_) return;
  last_number_ = number;
  who_left_ = member;
  if (end_number_ > last_number_ && ended_ == Status::ok) fail_without_who_left();
}

Status SharedTeam::admit(unsigned member, const Collective& call, coll::CallRecord& record) noexcept {
  const coll::Members members{placement_.members(), member};
  try {
    std::string why;
    if (const Status status = coll::make_work(call, members, record.work, why); status != Status::ok) {
      log::error("communicator {}: member {}: {}", name_, member, why);
      return status;
    }
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  coll::Sides sides;
  const Status status = coll::look_at_memory(engine_.memory_kinds(), call, record.work, name_, sides);
  return status == Status::ok ? table_.stage(members, sides, name_, record) : status;
}

SharedCall* SharedTeam::next_call_of(std::size_t index, Status& why) noexcept {
  const std::uint64_t number = posted_[index];
  if (number == end_number_) {
    if (number - first_number_ >= kCallsAhead) {
      why = Status::limit_reached;
      return nullptr;
    }
    try {
      if (number - first_number_ == calls_.size()) grow();
    } catch (const std::bad_alloc&) {
      why = Status::no_memory;
      return nullptr;
    }
    ++end_number_;
  }
  return &call_of(number);
}

void SharedTeam::grow() {
  const std::size_t room = calls_.size(), members = posted_.size();
  std::vector<std::unique_ptr<SharedCall>> grown(room == 0 ? kCallsAtFirst : 2 * room);
  if (room == 0) {
    for (auto& call : grown) call = std::make_unique<SharedCall>(members);
  }
  for (std::uint64_t number = first_number_; number != end_number_; ++number)
    grown[(number + room) % grown.size()] = std::make_unique<SharedCall>(members);
  for (std::uint64_t number = first_number_; number != end_number_; ++number)
    grown[number % grown.size()] = std::move(calls_[number % room]);
  calls_ = std::move(grown);
}

void SharedTeam::join(SharedCall& call, std::size_t index, coll::CallRecord& record) noexcept {
  ++posted_[index];
  call.parts[index] = &record;
  call.staged = call.staged || record.staging != nullptr;
  if (call.arrived++ == 0) {
    call.first = static_cast<unsigned>(index);
  } else if (call.odd == SharedCall::kNobody && !same_words(record.work, call.work(call.first))) {
    call.odd = static_cast<unsigned>(index);
  }
}

void SharedTeam::drive() noexcept {
  while (!is_idle() && !exchanging_) {
    SharedCall& call = call_of(first_number_);
    if (call.odd != SharedCall::kNobody) return fail_by_words(call);
    if (!call.complete()) break;
    const Status status = carry_on(call);
    if (status == Status::in_progress) return;
    if (status != Status::ok) return why_.empty() ? fail_with_team(status) : fail(status, std::exchange(why_, {}));
    end_first(Status::ok);
  }
  engine_.pollers().detach(*this);
}

Status SharedTeam::carry_on(SharedCall& call) noexcept {
  using Phase = SharedCall::Phase;
  if (call.phase == Phase::bringing) {
    const Status status = move_all(call, [](coll::Staging& staging) noexcept { return staging.bring(); });
    if (status != Status::ok) return status;
    call.phase = Phase::exchanging;
  }
  if (call.phase == Phase::exchanging) {
    const Status status = exchange(call);
    if (status != Status::ok) return status;
    call.phase = Phase::returning;
  }
  return move_all(call, [](coll::Staging& staging) noexcept { return staging.take_back(); });
}

template <typename Step>
Status SharedTeam::move_all(const SharedCall& call, Step step) noexcept {
  if (!call.staged) return Status::ok;
  Status all = Status::ok;
  for (std::size_t index = 0; index < call.parts.size(); ++index) {
    coll::Staging* staging = call.parts[index]->staging;
    const Status status = staging == nullptr ? Status::ok : step(*staging);
    if (status == Status::in_progress) {
      all = status;
    } else if (status != Status::ok) {
      try {
        why_ = fmt::format("communicator {}: device memory of member {} could not be copied: {}", name_,
                           placement_.ranks_here()[index], status_text(status));
      } catch (const std::bad_alloc&) {
      }
      return Status::device_failed;
    }
  }
  if (all == Status::in_progress) engine_.pollers().attach(*this);
  return all;
}

Status SharedTeam::exchange(SharedCall& call) noexcept {
  Collective what;
  Status status = Status::no_memory;
  try {
    status = carry_on_kind({placement_, room_, call, what, why_});
    if (status == Status::invalid_argument) why_ = fmt::format("communicator {} has ended: {}", name_, why_);
  } catch (const std::bad_alloc&) {
    why_ = "no memory";  // short enough to take none
  }
  if (status != Status::in_progress) return status;
  op_.delivered = {
      [](void* self, const OpResult& result) noexcept { static_cast<SharedTeam*>(self)->exchanged(result); }, this};
  exchanging_ = true;
  const Status posted = team_.post(what, op_);
  if (posted != Status::in_progress) exchanging_ = false;
  return posted;
}

void SharedTeam::exchanged(const OpResult& result) noexcept {
  exchanging_ = false;
  if (result.status != Status::ok) return fail_with_team(result.status);
  ++call_of(first_number_).exchanges;
  drive();
}

unsigned SharedTeam::poll() noexcept {
  const std::uint64_t before = first_number_;
  drive();
  return static_cast<unsigned>(first_number_ - before);
}

/// The first call that is under way has ended.
void SharedTeam::end_first(Status status) noexcept {
  SharedCall& call = call_of(first_number_++);
  for (coll::CallRecord*& part : call.parts) {
    if (part == nullptr) continue;
    part->result = {status, status == Status::ok ? part->work.result_bytes : 0};
    table_.end(*std::exchange(part, nullptr));
  }
  call.reset();
  room_.relax();
}

void SharedTeam::fail_by_words(const SharedCall& call) noexcept {
  const auto ranks = placement_.ranks_here();
  const auto said = [&](unsigned index) {
    const coll::Work& work = call.work(index);
    std::string text = coll::describe(work.words);
    if (work.uneven) text += " (blocks of different sizes)";
    if (work.folding.op == ReduceOp::user) text += fmt::format(" (elements of {} bytes)", work.element);
    return text;
  };
  std::string text;
  try {
    text = fmt::format(
        "communicator {} has ended, in call {}: member {} called {}, and member {} of the same process {}: all members "
        "call the same, with the same sizes, types, ops and roots, in one order",
        name_, first_number_ + 1, ranks[call.first], said(call.first), ranks[call.odd], said(call.odd));
  } catch (const std::bad_alloc&) {
  }
  fail(Status::invalid_argument, std::move(text));
}

void SharedTeam::fail_without_who_left() noexcept {
  std::string text;
  try {
    text = fmt::format("communicator {} has ended: its member {} has ended its program, and does not come to call {}",
                       name_, who_left_, last_number_ + 1);
  } catch (const std::bad_alloc&) {
  }
  fail(Status::peer_lost, std::move(text));
}

void SharedTeam::fail(Status status, std::string why) noexcept {
  log::error("{}", why);
  end_all(status, std::move(why));
}

void SharedTeam::fail_with_team(Status status) noexcept {
  std::string why;
  try {
    why = team_.fault();  // which it has said itself
    if (why.empty()) why = fmt::format("communicator {} has refused a call; the log says why", name_);
  } catch (const std::bad_alloc&) {
  }
  end_all(status, std::move(why));
}

void SharedTeam::end_all(Status status, std::string why) noexcept {
  if (ended_ == Status::ok) {
    ended_ = status;
    fault_ = std::move(why);
    if (fault_.empty()) fault_ = "it has ended";
  }
  engine_.pollers().detach(*this);
  // The other processes hear of it, unless it was they who ended the team; and it lets go of memory that lies here.
  if (team_.is_open() && (!is_idle() || status != Status::canceled)) team_.abandon();
  if (op_.pending()) op_.detach();
  exchanging_ = false;
  while (!is_idle()) end_first(status);
}

void SharedTeam::close() noexcept {
  end_all(Status::canceled, "it was closed");
  team_.close();
}

std::string SharedTeam::awaited() const {
  if (is_idle() || call_of(first_number_).complete()) return {};
  const SharedCall& call = call_of(first_number_);
  std::string who;
  for (std::size_t index = 0; index < call.parts.size(); ++index) {
    if (call.parts[index] == nullptr)
      who += fmt::format("{}{}", who.empty() ? "" : ", ", placement_.ranks_here()[index]);
  }
  return fmt::format("communicator {}: call {}, {}, waits for members of this process: {}", name_, first_number_ + 1,
                     coll::describe(call.work(call.first).words), who);
}

}  // namespace brant::mpi
