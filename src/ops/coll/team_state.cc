#include "ops/coll/team_state.h"

#include <algorithm>
#include <new>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "core/joined_rank.h"
#include "core/process_name.h"

namespace brant {
namespace {

using coll::Algorithm;
using coll::CallRecord;
using coll::Fault;

/// Looks for the others before a call waits as everything waits: some microseconds where every process has a core, and
/// then so many more between which others have theirs.
constexpr unsigned kSpinsWithRoom = 100;
constexpr unsigned kSpinsCrowded = 20;
constexpr unsigned kYields = 2000;
/// A program that does nothing but small collectives makes progress all the same.
constexpr unsigned kRunsWithoutProgress = 64;
constexpr unsigned kCallsOfTurn = 8;
/// What a member has sent before its program ended is here by then.
constexpr std::int64_t kFarewellGrace = 1'000'000'000;

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

unsigned spins_for(const port::JobInfo& job) noexcept {
  const auto cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return job.local_size > cores ? kSpinsCrowded : kSpinsWithRoom;
}

coll::Members members_in(Runtime& runtime, std::span<const Rank> ranks) {
  const auto own = std::find(ranks.begin(), ranks.end(), runtime.rank());
  if (own == ranks.end()) {
    throw Error(
        Status::invalid_argument,
        fmt::format("rank {} makes a team that it is no member of: only members make one", runtime.rank().value));
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Rank rank = ranks[i];
    if (rank.value < 0 || (rank.value >= runtime.size() && !joined_rank::is_one(rank.value)))
      throw Error(Status::invalid_argument,
                  fmt::format("a team of rank {}, which the job does not have: it has {}", rank.value, runtime.size()));
    if (std::find(ranks.begin() + static_cast<std::ptrdiff_t>(i) + 1, ranks.end(), rank) != ranks.end())
      throw Error(Status::invalid_argument, fmt::format("rank {} stands in the list of a team twice", rank.value));
  }
  return {static_cast<unsigned>(ranks.size()), static_cast<unsigned>(own - ranks.begin())};
}

std::optional<unsigned> member_of(std::span<const Rank> ranks, Rank rank) noexcept {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  if (found == ranks.end()) return std::nullopt;
  return static_cast<unsigned>(found - ranks.begin());
}

constexpr TeamWording kOwnWording;

std::uint64_t name_of(Engine& engine, Rank rank) {
  const Peer* peer = engine.peers().find(rank.value);
  if (peer == nullptr) throw Error(Status::peer_lost, fmt::format("a member of a team, rank {}, has left", rank.value));
  return process_name(peer->record);
}

/// From the list, and the label or how many teams of that list there were: all members count alike.
std::uint64_t make_key(std::span<const Rank> ranks, std::uint64_t label, TeamTable& table) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325;
  const auto mix = [&hash](std::uint64_t value) {
    hash = (hash ^ value) * 0x0000'0100'0000'01b3;
    hash ^= hash >> 29;
  };
  const bool joined = std::ranges::any_of(ranks, [](Rank rank) { return joined_rank::is_one(rank.value); });
  for (const Rank rank : ranks)
    mix(joined ? name_of(table.engine(), rank) : static_cast<std::uint64_t>(rank.value) + 1);
  mix(ranks.size() << 32);
  if (label == 0) {
    mix(table.count_of(hash));
  } else {
    mix(0);
    mix(label);
  }
  return hash;
}

}  // namespace

TeamState::TeamState(Runtime& runtime, std::span<const Rank> members, const TeamOptions& options)
    : runtime_(runtime),
      engine_(runtime.worker().engine()),
      table_(engine_.service<TeamTable>()),
      ranks_(members.begin(), members.end()),
      members_(members_in(runtime, members)),
      options_(options),
      wording_(options.wording != nullptr ? *options.wording : kOwnWording),
      patience_(options.patience),
      key_(make_key(ranks_, options.label, table_)),
      watches_(members.size()),
      mail_(table_.messenger(), key_, members),
      ways_(mail_, members_),
      shrinking_(members.size()),
      journal_(table_.pages()),
      spins_(spins_for(engine_.job())) {}

TeamState::~TeamState() {
  if (!calls_.empty()) fail_by(Fault::Why::closed, members_.self);
  streams_.retire();
  engine_.pollers().detach(*this);
  for (Watch& watch : watches_) {
    if (watch.peer != nullptr) watch.peer->remove_outstanding(watch);
  }
  if (entered_) table_.leave(key_);
}

std::string TeamState::describe_fault() const {
  if (!fault_.happened()) return {};
  Fault told = fault_;
  if (told.on_stream == 0) {
    told.call = journal_.shown(fault_.call);
    told.last_call = journal_.shown(fault_.last_call);
  }
  return coll::describe(told, name_, ranks_, members_.self, wording_);
}

bool TeamState::plan(const Collective& call, coll::Plan& plan) const noexcept {
  try {
    coll::Work work;
    std::string why;
    if (coll::make_work(call, members_, work, why) != Status::ok) return false;
    const coll::PlanQuery query = ways_.query(work, options_.way);
    if (coll::why_not_forced(query) != nullptr) return false;
    plan = coll::plan_for(query);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

Status TeamState::plan_call(const Request& request, CallRecord& record, coll::Sides& sides) noexcept {
  if (fault_.happened()) {
    say_fault();
    return fault_.status();
  }
  try {
    std::string why;
    if (const Status status = coll::make_work(request.call, members_, record.work, why); status != Status::ok) {
      log::error("team {}: {}", name_, why);
      return status;
    }
    const coll::PlanQuery query = ways_.query(record.work, request.way);
    if (const char* reason = coll::why_not_forced(query)) {
      log::error("team {}: {} does not go by {}, which the team's options force: {}. TeamWay::automatic carries it out",
                 name_, coll::describe(record.work.words), team_way_name(request.way), reason);
      return Status::not_supported;
    }
    record.plan = coll::plan_for(query);
    return coll::look_at_memory(engine_.memory_kinds(), request.call, record.work, name_, sides);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

Status TeamState::admit(const Request& request, CallRecord& record) noexcept {
  coll::Sides sides;
  const Status status = plan_call(request, record, sides);
  return status == Status::ok ? table_.stage(members_, sides, name_, record) : status;
}

Status TeamState::admit(const coll::Prepared& call, CallRecord& record) noexcept {
  if (fault_.happened()) {
    say_fault();
    return fault_.status();
  }
  if (call.team != this) {
    log::error("team {}: a call that another team has prepared", name_);
    return Status::invalid_argument;
  }
  record.work = call.work;
  record.plan = call.plan;
  return table_.stage(members_, call.sides, name_, record);
}

std::unique_ptr<coll::Prepared> TeamState::prepare(const Collective& call) {
  auto prepared = std::make_unique<coll::Prepared>(call);
  CallRecord record;
  if (const Status status = plan_call({prepared->call, options_.way}, record, prepared->sides); status != Status::ok) {
    const std::string why = describe_fault();
    throw Error(status, fmt::format("team {}: the call was not prepared: {}", name_,
                                    why.empty() ? "the log says what does not fit" : why));
  }
  prepared->team = this;
  prepared->work = record.work;
  prepared->plan = record.plan;
  return prepared;
}

template <typename Call>
OpResult TeamState::carry_out(const Call& call) noexcept {
  CallRecord record;
  if (const Status status = admit(call, record); status != Status::ok) return {status, 0};
  calls_.push_back(record);
  // Messages and copies of devices come by progress.
  const unsigned first = coll::is_of_board(record.plan) && record.staging == nullptr ? 0 : spins_;
  unsigned moves = 0;
  for (unsigned look = first; !record.ended && look < spins_ + kYields; ++look) {
    if (drive() != 0) {
      look = first;  // the others are at work: the next turn is as near as the first one was
      if (++moves % kRunsWithoutProgress == 0) static_cast<void>(engine_.progress().step());
      continue;
    }
    if (look < spins_) {
      relax();
    } else {
      static_cast<void>(engine_.progress().step());
      std::this_thread::yield();
    }
  }
  if (!record.ended) {
    engine_.pollers().attach(*this);
    static_cast<void>(engine_.waiting().wait([](void* ended) noexcept { return *static_cast<bool*>(ended); },
                                             &record.ended, Worker::kForever));
    if (calls_.empty()) engine_.pollers().detach(*this);
  } else if (++runs_ % kRunsWithoutProgress == 0) {
    static_cast<void>(engine_.progress().step());
  }
  return record.result;
}

template <typename Call>
Status TeamState::post_call(const Call& call, Op& op) noexcept {
  if (op.pending()) return refuse_pending_op();
  CallRecord* record = table_.calls().take();
  if (record == nullptr) return Status::limit_reached;
  if (const Status status = admit(call, *record); status != Status::ok) {
    table_.calls().give_back(record);
    return status;
  }
  record->pooled = true;
  record->own(engine_.completions(), op);
  calls_.push_back(*record);
  engine_.pollers().attach(*this);
  if (calls_.front() == record) static_cast<void>(drive());
  return Status::in_progress;
}

OpResult TeamState::run(const Collective& call, TeamWay way) noexcept { return carry_out(Request{call, way}); }
OpResult TeamState::run(const coll::Prepared& call) noexcept { return carry_out(call); }
Status TeamState::post(const Collective& call, Op& op) noexcept { return post_call(Request{call, options_.way}, op); }
Status TeamState::post(const coll::Prepared& call, Op& op) noexcept { return post_call(call, op); }

void TeamState::begin(CallRecord& record) noexcept {
  const std::int64_t now = coarse_now();
  record.number = journal_.begin(record.work.words, record.plan.algorithm, now);
  record.waits_since_ns = now;
  if (told_.happened() && record.number >= told_.call) return fail(told_, true);
  ways_.begin(record);
  if (!coll::is_of_board(record.plan)) compare_all_words();
}

void TeamState::compare_all_words() noexcept {
  for (unsigned m = 0; m < members_.count && !fault_.happened(); ++m) {
    if (const am::Message* message = mail_.front(m)) compare_words(m, message->header<coll::MailHeader>());
  }
}

void TeamState::compare_words(unsigned member, const coll::MailHeader& header) noexcept {
  const CallRecord* record = calls_.front();
  if (record == nullptr || record->number == 0) return;
  const auto ahead = static_cast<std::int32_t>(header.call - static_cast<std::uint32_t>(record->number));
  if (ahead > 0 || (ahead == 0 && header.words() == record->work.words)) return;
  Fault fault;
  fault.why = Fault::Why::other_call;
  fault.member = member;
  fault.theirs = header.words();
  fail(fault);
}

unsigned TeamState::drive() noexcept {
  unsigned events = 0;
  while (CallRecord* record = calls_.front()) {
    if (record->number == 0) begin(*record);
    if (fault_.happened()) break;
    const std::uint64_t before = ways_.moved(*record);
    Fault fault;
    const Algorithm planned = record->plan.algorithm;
    const Status status = ways_.step(*record, fault);
    if (record->plan.algorithm != planned) journal_.change(record->plan.algorithm);
    if (status == Status::in_progress) {
      if (ways_.moved(*record) != before) ++events;
      break;
    }
    ++events;
    if (status != Status::ok) {
      fail(fault);
      break;
    }
    end(*record, status);
    if (events == kCallsOfTurn) break;
  }
  return events;
}

void TeamState::end(CallRecord& record, Status status) noexcept {
  const std::uint64_t number = record.number;
  if (status == Status::ok && coll::is_of_board(record.plan)) met_ = number;
  calls_.remove(record);
  record.result = {status, status == Status::ok ? record.work.result_bytes : 0};
  if (number != 0) journal_.end(status, coarse_now());
  if (calls_.empty()) engine_.pollers().detach(*this);
  table_.end(record);
  if (told_.happened() && calls_.empty() && number + 1 >= told_.call) fail(told_, true);
}

void TeamState::fail_by(Fault::Why why, unsigned member) noexcept {
  Fault fault;
  fault.why = why;
  fault.member = member;
  fail(fault);
}

void TeamState::fail(Fault fault, bool told) noexcept {
  if (fault_.happened()) return;
  if (!told) fault.teller = members_.self;
  if (!told && fault.on_stream == 0) {
    fault.call = journal_.last();
    fault.last_call = std::max(watches_[fault.member].last_call, met_);
    const CallRecord* record = calls_.front();
    if (record != nullptr) fault.ours = record->work.words;
    // What the others have not ended yet they can end without this member, which has.
    if (record == nullptr && fault.why == Fault::Why::closed) ++fault.call;
    if (fault.why == Fault::Why::other_call) fault.last_call = fault.call;
  }
  fault_ = fault;
  journal_.note_fault(fault.status());
  streams_.abort();
  if (fault.why == Fault::Why::lost && fault.member != members_.self)
    static_cast<void>(shrinking_.note_gone(fault.member));
  const bool concerns_calls = !calls_.empty() || fault.on_stream != 0;
  if (concerns_calls) say_fault();
  ways_.abandon();
  while (CallRecord* record = calls_.front()) end(*record, fault_.status());
  mail_.drop_all();
  // A death is seen by all; what one alone knows is not.
  if (told || (fault.why == Fault::Why::lost && !concerns_calls)) return;
  const auto bytes = std::as_bytes(std::span(&fault_, 1));
  for (unsigned m = 0; m < members_.count; ++m) {
    const Peer* peer = watches_[m].peer;
    if (peer != nullptr && !peer->lost) static_cast<void>(mail_.send(m, coll::MailKind::fault, fault_.call, {}, bytes));
  }
}

/// Once, where it is first of consequence.
void TeamState::say_fault() noexcept {
  const bool is_death = fault_.why == Fault::Why::lost || fault_.why == Fault::Why::left;
  if (std::exchange(fault_said_, true) || (is_death && options_.wording != nullptr)) return;
  try {
    log::error("{}", describe_fault());
  } catch (const std::bad_alloc&) {
  }
}

unsigned TeamState::poll() noexcept { return drive(); }

bool TeamState::lets_sleep() const noexcept {
  const CallRecord* record = calls_.front();
  if (record == nullptr) return true;
  return record->number != 0 && ways_.lets_sleep(*record);
}

void TeamState::on_mail(am::Message& message) noexcept {
  const std::optional<unsigned> from = member_of(ranks_, Rank{message.peer});
  const auto header = message.header<coll::MailHeader>();
  const auto kind = static_cast<coll::MailKind>(message.wire.session);
  const auto refuse = [&](const char* what) {
    if (Peer* peer = engine_.peers().find(message.peer)) engine_.peers().distrust(*peer, what);
    mail_.release(message);
  };
  if (!from) return refuse("a collective's message for a team that it is no member of");
  if (kind == coll::MailKind::data) {
    if (fault_.happened()) return mail_.release(message);
    watches_[*from].last_call = std::max<std::uint64_t>(watches_[*from].last_call, header.call);
    mail_.keep(*from, message);
    return compare_words(*from, header);
  }
  if (kind == coll::MailKind::shrink) {
    try {
      if (!shrinking_.hear(*from, message.payload())) return refuse("a list of survivors that is none");
    } catch (const std::bad_alloc&) {
      log::error("team {}: no memory for a list of survivors", name_);
    }
    return mail_.release(message);
  }
  Fault fault;
  const bool whole = kind == coll::MailKind::fault && message.bytes == sizeof(fault);
  if (whole) std::memcpy(&fault, message.data, sizeof(fault));
  if (!whole || !coll::is_sound(fault, ranks_.size()) || fault.teller != *from)
    return refuse("a collective's message that is none");
  mail_.release(message);
  if (fault.on_stream != 0) return fail(fault, true);
  // A call before that one may still end well: those who are further have given what it takes.
  const CallRecord* record = calls_.front();
  if (record == nullptr || record->number == 0 || record->number >= fault.call) return fail(fault, true);
  if (!told_.happened()) told_ = fault;
}

void TeamState::on_lost(PeerOp& op) noexcept {
  auto& watch = static_cast<Watch&>(op);
  TeamState& self = *watch.team;
  static_cast<void>(self.drive());  // what it has given before may be all that was missing
  static_cast<void>(self.shrinking_.note_gone(watch.member));
  self.fail_by(Fault::Why::lost, watch.member);
}

void TeamState::on_left(Rank rank) noexcept {
  const std::optional<unsigned> member = member_of(ranks_, rank);
  if (member && watches_[*member].left_ns == 0) watches_[*member].left_ns = coarse_now();
}

void TeamState::look_around() noexcept {
  streams_.look();
  CallRecord* record = calls_.front();
  if (record == nullptr || record->number == 0) return;
  const std::int64_t now = coarse_now();
  if (const std::uint64_t before = std::exchange(record->moved_before, ways_.moved(*record) + 1);
      before != record->moved_before) {
    record->waits_since_ns = now;
  }
  compare_all_words();  // a call of the board does not look there
  if (fault_.happened()) return;
  const unsigned member = ways_.awaited(*record);
  journal_.note_awaited(member);
  const Watch& watch = watches_[member];
  if (member == members_.self) return;
  if (watch.left_ns != 0 && now - watch.left_ns > kFarewellGrace && now - record->waits_since_ns > kFarewellGrace)
    return fail_by(Fault::Why::left, member);
  // The members of another host know which of them is late, and say so first.
  const bool others_know = ways_.awaits_a_host(*record);
  const auto patience = std::chrono::nanoseconds(others_know ? patience_ + patience_ / 2 : patience_).count();
  if (now - record->waits_since_ns > patience) fail_by(Fault::Why::late, member);
}

bool TeamState::say_what_it_waits_for() const noexcept {
  const CallRecord* record = calls_.front();
  if (record == nullptr || record->number == 0) return false;
  try {
    const unsigned member = ways_.awaited(*record);
    log::warn("{} {}: call {}, {}, waits for {}", wording_.team, name_, journal_.shown(record->number),
              coll::describe(record->work.words), coll::describe_member(member, ranks_[member], wording_));
  } catch (const std::bad_alloc&) {
  }
  return true;
}

}  // namespace brant
