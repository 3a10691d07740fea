#include "models/chare/core.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "base/log.h"
#include "core/batch_time.h"
#include "models/chare/message_check.h"

namespace brant::detail {
namespace {

constexpr unsigned kBatch = 64;         // messages between looks at the network, at most
constexpr unsigned kTreeArity = 4;      // children of a rank in a broadcast
constexpr unsigned kHoldDepthMax = 32;  // calls held back inside calls held back: each costs stack

/// Ranks to which `self` passes on what `root` spreads.
template <typename Visit>
void for_each_child(std::int32_t self, std::int32_t root, std::int32_t ranks, Visit&& visit) {
  const std::int32_t place = (self - root + ranks) % ranks;
  for (unsigned i = 1; i <= kTreeArity; ++i) {
    const std::int64_t child = std::int64_t{place} * kTreeArity + i;
    if (child < ranks) visit(static_cast<std::int32_t>((child + root) % ranks));
  }
}

/// Numbers the programs of one runtime: all ranks make theirs in the same order, one after another.
struct Sessions final : Service {
  explicit Sessions(Engine&) noexcept {}
  std::uint16_t next(int rank) {
    if (running == nullptr) return ++made;
    throw Error(Status::invalid_argument,
                fmt::format("rank {}: this runtime has a Chares already, and a second one would take its messages: use "
                            "that one, or destroy it before another is made",
                            rank));
  }
  bool stalled(std::chrono::nanoseconds idle, bool) noexcept override {
    return running != nullptr && running->stalled(idle);
  }
  std::uint16_t made = 0;
  Core* running = nullptr;  ///< The last one made, while it lives.
};

/// Messages of the runtime to itself, which the program knows nothing of.
constexpr bool is_upkeep(MessageKind kind) noexcept {
  return kind == MessageKind::wave || kind == MessageKind::wave_answer;
}

}  // namespace

Core::Core(Chares& chares, Engine& engine, const ChareOptions& options)
    : chares_(chares),
      engine_(engine),
      messenger_(engine.service<am::Messenger>()),
      lanes_(engine.service<DataLanes>()),
      channels_(engine.service<ChannelTable>()),
      options_(options),
      registry_(Registry::of_program()),
      rank_(engine.job().rank),
      ranks_(engine.job().size),
      session_(engine.service<Sessions>().next(rank_)),
      collection_ids_(kSinglesBit, engine.job().size),
      outboxes_(static_cast<std::size_t>(engine.job().size)),
      quiet_(*this, options.deadlock_after) {
  const std::string fingerprint = fmt::format("{:016x} {}", registry_.fingerprint(), registry_.size());
  const Status status = engine.boot().put("brant.chares", std::as_bytes(std::span(fingerprint)));
  if (status != Status::ok) {
    throw Error(status, fmt::format("rank {}: the list of chare classes could not be published: {}. {}", rank_,
                                    status_text(status), engine.boot().last_error()));
  }
  make_teams();
  messenger_.claim(am::ServiceId::chare, &Core::on_message, &Core::on_trouble, this);
  engine.service<Sessions>().running = this;
}

Core::~Core() {
  tell_of_leaving();
  // What still comes is for nobody.
  messenger_.claim(am::ServiceId::chare, &Core::receive_late, nullptr, &engine_);
  stopping_ = true;
  main_.reset();
  abandon_data();
  let_all_go();
  await_sources();
  // A destructor that looks for a chare finds none; the array it belongs to it knows itself.
  auto dying = std::move(collections_);
  collections_.clear();
  last_found_ = nullptr;
  const auto teams = dying.extract(Teams::target_on(*this, rank_).collection);  // goes last: others wait for it
  for (const auto& [id, collection] : dying) collection->destroy_all();
  const auto over = std::make_exception_ptr(Error(Status::shutting_down, "the program ended before the reply came"));
  for (const std::uint32_t number : replies_.numbers(0, true)) fail_waiting(number, over);
  engine_.service<Sessions>().running = nullptr;
}

/// What will not run any more.
void Core::let_all_go() noexcept {
  for (const auto& [id, collection] : collections_) {
    for (auto& [key, list] : collection->waiting) {
      while (am::Message* message = list.pop_front()) let_go(*message);
    }
  }
  while (am::Message* message = queue_.pop()) let_go(*message);
  for (am::MessageList& outbox : outboxes_) {
    while (am::Message* message = outbox.pop_front()) let_go(*message);
  }
  for (auto& [id, list] : unknown_) {
    while (am::Message* message = list.pop_front()) let_go(*message);
  }
  while (am::Message* message = enrolment_.take_parked()) let_go(*message);
  for (auto& [id, list] : unknown_sections_) {
    while (am::Message* message = list.pop_front()) let_go(*message);
  }
}

void Core::make_teams() {
  const Target target = Teams::target_on(*this, rank_);
  Collection& own = *find_collection(target.collection);
  ReadArchive nothing(&chares_, nullptr, 0);
  own.construct(target.key, ConstructorOf<Teams>::get(), nothing);
  teams_ = static_cast<Teams*>(own.find(target.key));
}

void Core::connect() {
  port::Boot& boot = engine_.boot();
  // Others may still wait for what this process has sent in an earlier program: the network goes on meanwhile.
  const TimePoint deadline = deadline_after(engine_.options().boot_timeout);
  Status status = Status::timed_out;
  for (int round = 0; status == Status::timed_out && Clock::now() < deadline; ++round) {
    const auto patience = std::chrono::milliseconds(round < 10 ? 1 : 20);
    status = boot.fence(patience);
    if (status == Status::timed_out) engine_.progress_while_moving(patience);
  }
  const std::string mine = fmt::format("{:016x} {}", registry_.fingerprint(), registry_.size());
  for (int other = 0; status == Status::ok && other < ranks_; ++other) {
    const auto published = boot.get(other, "brant.chares");
    status = published.status();
    if (!published.ok()) break;
    const std::string theirs(reinterpret_cast<const char*>(published.value().data()), published.value().size());
    if (theirs == mine) continue;
    throw Error(Status::version_mismatch,
                fmt::format("rank {} runs another program than rank {}: their chare classes and entry methods differ "
                            "({} against {}). Start the same binary on all ranks",
                            other, rank_, theirs, mine));
  }
  if (status != Status::ok) {
    throw Error(status, fmt::format("rank {}: the lists of chare classes could not be compared: {}. {}", rank_,
                                    status_text(status), boot.last_error()));
  }
  connected_ = true;
}

am::Message& Core::make(const Envelope& envelope, std::size_t bytes) {
  am::Message* message = messenger_.make(bytes);
  if (message == nullptr) {
    throw Error(Status::no_memory, fmt::format("rank {}: no memory for a message of {} bytes", rank_, bytes));
  }
  message->set_header(envelope);
  message->wire.session = session_;
  return *message;
}

void Core::count_in(am::Message& message) noexcept {
  Notes notes = notes_of(message);
  notes.flags |= Notes::kUndelivered;
  set_notes(message, notes);
  ++undelivered_;
  undelivered_bytes_ += message.bytes;
}

void Core::count_out(am::Message& message) noexcept {
  Notes notes = notes_of(message);
  if ((notes.flags & Notes::kUndelivered) == 0) return;
  notes.flags &= ~Notes::kUndelivered;
  set_notes(message, notes);
  --undelivered_;
  undelivered_bytes_ -= message.bytes;
}

void Core::drop(am::Message& message) noexcept {
  Notes notes = notes_of(message);
  if (notes.holders != 0) {
    --notes.holders;
    set_notes(message, notes);
    return;
  }
  count_out(message);
  let_go(message);
}

void Core::post(am::Message& message) {
  const auto envelope = message.header<Envelope>();
  if ((stopping_ || ended_) && !envelope.urgent()) {  // nobody would run it
    let_go(message);
    return;
  }
  count_in(message);
  if (envelope.counted()) ++calls_sent_;
  route(message);
}

void Core::route(am::Message& message) {
  const auto envelope = message.header<Envelope>();
  if (envelope.by_tree()) {
    forward_by_tree(message, envelope);
    if (envelope.kind == MessageKind::create) make_collection(message, envelope);  // calls that follow know where to go
    if (envelope.has_data()) return stage(message, envelope, true);
    return enqueue(message, envelope);
  }
  if (envelope.kind == MessageKind::multicast) return enqueue(message, envelope);
  std::int32_t destination = message.peer;  // of a reply
  if (envelope.kind != MessageKind::reply) {
    const Collection* collection = find_collection(envelope.collection);
    if (collection == nullptr) return await_creation(message, envelope);
    try {
      destination = collection->rank_of(key_of(message, envelope));
    } catch (...) {
      drop(message);
      throw;
    }
  }
  if (envelope.reply != 0 && envelope.kind == MessageKind::call && message.wire.source < 0) {
    if (ReplyTable::Entry* waiting = replies_.find(envelope.reply)) waiting->rank = destination;
  }
  if (destination == rank_) return enqueue(message, envelope);
  send_to(destination, message, envelope);
}

void Core::send_to(std::int32_t destination, am::Message& message, const Envelope& envelope) {
  if (static_cast<std::size_t>(destination) >= outboxes_.size()) [[unlikely]] {
    drop(message);
    throw Error(Status::invalid_argument,
                fmt::format("a message names rank {}: the job has ranks 0 to {}", destination, ranks_ - 1));
  }
  am::MessageList& outbox = outboxes_[static_cast<std::size_t>(destination)];
  if (!envelope.urgent()) ++wire_sent_;
  if (outbox.empty() || envelope.urgent()) {
    count_out(message);  // the messenger takes the notes over
    const am::Flow flow = envelope.urgent() ? am::Flow::urgent : am::Flow::credit;
    const Status status = send(destination, message, envelope, flow);
    if (status == Status::ok) return;
    if (status != Status::limit_reached) {
      let_go(message);
      troubles_.emplace_back(Rank{destination}, status);
      return;
    }
    count_in(message);
  }
  message.peer = destination;
  outbox.push_back(message);
  ++in_outboxes_;
}

/// False: nothing could go.
bool Core::flush_outboxes() {
  bool moved = false;
  for (std::size_t destination = 0; destination < outboxes_.size(); ++destination) {
    am::MessageList& outbox = outboxes_[destination];
    while (am::Message* message = outbox.front()) {
      outbox.pop_front();
      count_out(*message);
      const auto to = static_cast<std::int32_t>(destination);
      const auto envelope = message->header<Envelope>();
      const am::Flow flow = envelope.urgent() ? am::Flow::urgent : am::Flow::credit;
      const Status status = send(to, *message, envelope, flow);
      if (status == Status::limit_reached) {
        count_in(*message);
        outbox.push_front(*message);
        break;
      }
      --in_outboxes_;
      moved = true;
      if (status != Status::ok) {
        let_go(*message);
        troubles_.emplace_back(Rank{to}, status);
      }
    }
  }
  return moved;
}

void Core::forward_by_tree(const am::Message& message, const Envelope& envelope) {
  for_each_child(rank_, static_cast<std::int32_t>(envelope.reply), ranks_,
                 [&](std::int32_t child) { send_copy(child, message, envelope); });
}

void Core::send_copy(std::int32_t destination, const am::Message& message, const Envelope& envelope) {
  am::Message& copy = make(envelope, message.bytes);
  if (message.bytes != 0) std::memcpy(copy.data, message.data, message.bytes);
  share_data(copy, envelope);
  if (!envelope.urgent()) count_in(copy);
  if (envelope.counted()) ++calls_sent_;
  send_to(destination, copy, envelope);
}

void Core::drop_damaged(Engine& engine, am::Message& message) noexcept {
  engine.distrust(message.wire.source, "a message of chares that contradicts itself");
  engine.service<am::Messenger>().release(message);
}

bool Core::drop_if_damaged(am::Message& message) noexcept {
  if (is_sound(message, ranks_, registry_)) [[likely]]
    return false;
  drop_damaged(engine_, message);
  return true;
}

void Core::on_message(void* self, am::Message& message) noexcept {
  auto& core = *static_cast<Core*>(self);
  if (core.drop_if_damaged(message)) [[unlikely]]
    return;
  if (message.wire.session != core.session_) return receive_late(&core.engine_, message);  // of an earlier program
  const auto envelope = message.header<Envelope>();
  if (!envelope.urgent()) ++core.wire_taken_;
  if (is_upkeep(envelope.kind)) core.engine_.note_upkeep();
  core.take_in(message);
}

void Core::take_in(am::Message& message) {
  try {
    const auto envelope = message.header<Envelope>();
    if (enrolment_.must_wait(message, envelope)) [[unlikely]]
      return enrolment_.park(message);
    if (envelope.has_data() && envelope.by_tree()) {  // it goes on when its data is here
      set_notes(message, {});
      return stage(message, envelope, true);
    }
    if (envelope.by_tree()) forward_by_tree(message, envelope);
    if (envelope.urgent() && envelope.kind != MessageKind::stop) {
      on_control(message, envelope);
      messenger_.release(message);
    } else {
      set_notes(message, {});
      enqueue(message, envelope);
    }
  } catch (const std::exception& error) {
    fail_job(fmt::format("rank {}: a message from rank {} could not be taken in: {}", rank_, message.wire.source,
                         error.what()));
  }
}

void Core::on_trouble(void* self, Rank peer, Status status) noexcept {
  static_cast<Core*>(self)->troubles_.emplace_back(peer, status);
}

Collection* Core::find_collection(std::uint32_t id) {
  if (last_found_ != nullptr && last_found_->id() == id) [[likely]]
    return last_found_;
  const auto found = collections_.find(id);
  if (found != collections_.end()) return last_found_ = found->second.get();
  if ((id & kSinglesBit) == 0) return nullptr;
  const auto* chare_class =
      registry_.find<ClassInfo>(static_cast<std::uint16_t>(id & 0xffff), RegisteredKind::chare_class);
  if (chare_class == nullptr) return nullptr;
  auto made = std::make_unique<Collection>(*this, id, *chare_class, PlacementRule{}, nullptr);
  made->ready = true;
  return last_found_ = collections_.emplace(id, std::move(made)).first->second.get();
}

Collection& Core::make_collection(const am::Message& message, const Envelope& envelope) {
  PlacementRule rule;
  std::uint16_t number = 0;
  std::memcpy(&rule, message.data, sizeof(rule));
  std::memcpy(&number, message.data + sizeof(rule), sizeof(number));
  const auto* chare_class = registry_.find<ClassInfo>(number, RegisteredKind::chare_class);
  if (chare_class == nullptr) throw Error(Status::internal, "a collection of a class that is none");
  const auto* function = registry_.find<PlacementInfo>(rule.function, RegisteredKind::placement);
  auto made = std::make_unique<Collection>(*this, envelope.collection, *chare_class, rule, function);
  collection_ids_.note_made(envelope.collection);
  return *collections_.insert_or_assign(envelope.collection, std::move(made)).first->second;
}

std::uint32_t Core::new_collection_id() {
  for (std::uint32_t tried = 0; tried <= collections_.size(); ++tried) {
    const std::uint32_t id = collection_ids_.next(rank_);
    if (!collections_.contains(id)) return id;
  }
  throw Error(Status::limit_reached,
              fmt::format("rank {} has {} arrays of chares: no number is left for another; destroy some", rank_,
                          collections_.size()));
}

std::string Core::name_of(const Target& target) {
  const Collection* collection = find_collection(target.collection);
  return collection != nullptr ? collection->name_of(target.key) : fmt::format("array {}", target.collection);
}

std::string Core::name_of_array(std::uint32_t id) {
  const Collection* collection = find_collection(id);
  return collection != nullptr ? fmt::format("{} (array {})", collection->chare_class().owner, id)
                               : fmt::format("array {}", id);
}

/// Too much is undelivered: lets others run until there is room. Runs no chare whose method is on the stack.
void Core::hold_back() {
  // Nine tenths; of small bounds at least 1, since with nothing left undelivered there is always room.
  const auto most_of = [](std::size_t bound) { return std::max<std::size_t>(bound - bound / 10, 1); };
  const auto too_much = [this, most_of] {
    return undelivered_ >= most_of(options_.undelivered_max) ||
           undelivered_bytes_ >= most_of(options_.undelivered_bytes_max);
  };
  const auto refuse = [this](const char* why) {
    throw Error(Status::limit_reached,
                fmt::format("rank {}: {} messages ({} bytes) that were sent here are undelivered (first: {}), and {}. "
                            "Send less at once, await replies in between, or raise ChareOptions::undelivered_max",
                            rank_, undelivered_, undelivered_bytes_, first_undelivered(), why));
  };
  ++held_back_;
  if (in_progress_ || hold_depth_ >= kHoldDepthMax || teams_->at_work()) {
    // Here nothing can be run: some more is let through, not without end.
    if (undelivered_ < 2 * options_.undelivered_max && undelivered_bytes_ < 2 * options_.undelivered_bytes_max) return;
    refuse(in_progress_ || hold_depth_ < kHoldDepthMax
               ? "the caller is a coroutine that a network completion or a reduction resumed"
               : "calls are held back inside calls too deeply");
  }
  ++hold_depth_;
  am::MessageList set_aside;
  const TimePoint deadline = deadline_after(options_.held_back_max);
  const char* why = nullptr;
  while (too_much() && !ended_ && !stopping_) {
    const unsigned events = std::exchange(in_progress_, true) ? 0 : engine_.progress();
    in_progress_ = false;
    const bool sent = in_outboxes_ != 0 && flush_outboxes();
    if (run_others(set_aside) || sent) continue;
    const bool all_here = in_outboxes_ == 0;
    if ((all_here && events == 0) || Clock::now() > deadline) {
      why = all_here ? "all of them are for chares whose methods have not returned"
                     : "their receivers took none for too long (a cycle of methods that wait for one another?)";
      break;
    }
    if (events == 0) std::this_thread::yield();
  }
  // What was skipped goes back to the front, in its order.
  run_next(set_aside);
  --hold_depth_;
  if (why != nullptr) refuse(why);
}

bool Core::may_run_nested(am::Message& message) {
  const auto envelope = message.header<Envelope>();
  if (envelope.kind == MessageKind::broadcast || envelope.kind == MessageKind::destroy ||
      envelope.kind == MessageKind::destroy_all) {
    return false;
  }
  if (envelope.kind != MessageKind::call) return true;
  const Collection* collection = ready_collection(envelope.collection);
  if (collection == nullptr) return true;
  const ChareBase* chare = collection->find(key_of(message, envelope));
  return chare == nullptr || !Collection::busy(*chare);
}

bool Core::run_others(am::MessageList& set_aside) {
  unsigned done = 0;
  BatchTime time;
  while (done < kBatch && !ended_ && !stopping_ && !time.over(done)) {
    am::Message* message = queue_.pop();
    if (message == nullptr) break;
    if (!may_run_nested(*message)) {
      set_aside.push_back(*message);
      continue;
    }
    run(*message);
    ++done;
  }
  return done != 0;
}

unsigned Core::step() {
  in_progress_ = true;
  unsigned events = engine_.progress();
  in_progress_ = false;
  if (!troubles_.empty()) [[unlikely]]
    look_at_troubles();
  if (lanes_.broken().status != Status::ok && !ended_) [[unlikely]]
    look_at_lanes();
  if (in_outboxes_ != 0 && flush_outboxes()) ++events;
  if (!stopping_ && !ended_ && !queue_.empty()) {
    events += run_ready(kBatch);
    engine_.note_user_code();
    engine_.break_silence();
  }
  if (main_.has_value()) look_at_main();
  if (events == 0 && rank_ == 0 && !leaving()) quiet_.look();
  return events;
}

Stillness Core::stillness() noexcept {
  Stillness here{wire_sent_, wire_taken_, ran_, data_started_, data_ended_, channels_.traffic(), false, false, false};
  if (here.channels.moves != channel_moves_ || channels_still_since_ == 0) {
    channel_moves_ = here.channels.moves;
    channels_still_since_ = coarse_now();
  }
  const auto settle_time = options_.deadlock_after.count() > 0 ? options_.deadlock_after : std::chrono::seconds(1);
  here.settled = coarse_now() - channels_still_since_ >= std::chrono::nanoseconds(settle_time).count();
  here.idle = queue_.empty() && in_outboxes_ == 0 && running_ == 0 && hold_depth_ == 0 && !leaving() &&
              lanes_.sources_idle() && !engine_.completions_due();
  // An operation that is no channel's may end by itself.
  here.stuck = here.idle && !engine_.goes_on() && engine_.pending_ops() <= channels_.live();
  return here;
}

void Core::run_until_ended() {
  while (!ended_) {
    if (step() != 0 || ended_) continue;
    auto something = [this, held = in_outboxes_ != 0] {
      if (!held && in_outboxes_ != 0) return true;  // a task that was resumed in the wait has sent too much at once
      return ended_ || !troubles_.empty() || lanes_.broken().status != Status::ok || (!queue_.empty() && !stopping_) ||
             (main_.has_value() && main_->finished());
    };
    // With messages held back for want of credit, the network alone cannot say when to go on.
    auto patience = in_outboxes_ != 0 ? std::chrono::nanoseconds(std::chrono::microseconds(50)) : Worker::kForever;
    if (rank_ == 0) patience = std::min(patience, quiet_.patience());
    in_progress_ = true;
    static_cast<void>(chares_.runtime().worker().wait_until(something, patience));
    in_progress_ = false;
  }
  drain_urgent();
}

/// The news of the ending that found no room must go out before this process stops moving the network.
void Core::drain_urgent() {
  for (am::MessageList& outbox : outboxes_) {
    am::MessageList urgent;
    while (am::Message* message = outbox.pop_front()) {
      --in_outboxes_;
      if (message->header<Envelope>().urgent()) {
        urgent.push_back(*message);
      } else {
        drop(*message);
      }
    }
    while (am::Message* message = urgent.pop_front()) {
      outbox.push_back(*message);
      ++in_outboxes_;
    }
  }
  const TimePoint deadline = deadline_after(options_.held_back_max);
  while (in_outboxes_ != 0 && Clock::now() < deadline) {
    engine_.progress();
    flush_outboxes();
  }
}

ChareCounts Core::counts() const noexcept {
  ChareCounts counts{calls_sent_, calls_run_, held_back_, queue_.size(), 0};
  for (const auto& [id, collection] : collections_) counts.elements += collection->size();
  for (const DataCall* call = data_calls_.front(); call != nullptr; call = data_calls_.next(*call)) {
    counts.data_coming += call->remaining != 0 ? 1 : 0;
  }
  --counts.elements;  // our own
  return counts;
}

}  // namespace brant::detail
