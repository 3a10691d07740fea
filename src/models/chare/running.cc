#include "brant/chare/detail/running.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/batch_time.h"
#include "models/chare/busy_mark.h"
#include "models/chare/core.h"
#include "models/chare/entry_trace.h"
#include "models/chare/mail.h"

namespace brant {

ChareBase::~ChareBase() {
  while (tasks_ != nullptr) {
    if (tasks_->invocation.reply != 0) detail::fail_unanswered(tasks_->invocation);
    tasks_->frame.destroy();  // its promise leaves the list
  }
  if (mail_ != nullptr) detail::Mail::close(*this);
}

namespace detail {
namespace {

constexpr unsigned kBroadcastBatch = 256;  // elements between looks at the network, at most

std::string text_of(const std::exception_ptr& error, Status& status) {
  status = Status::internal;
  try {
    std::rethrow_exception(error);
  } catch (const Error& thrown) {
    status = thrown.status();
    return thrown.what();
  } catch (const std::exception& thrown) {
    return thrown.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

}  // namespace

/// Of a chare that is destroyed while a coroutine of it has not answered.
void fail_unanswered(const Invocation& invocation) noexcept {
  Core& core = *invocation.core;
  if (core.leaving()) return;
  try {
    const std::string text = fmt::format("{}::{} on rank {} did not answer: the chare was destroyed while it waited",
                                         Mail::name_of(*invocation.chare), invocation.entry->name, core.rank());
    Invocation ended = invocation;
    ended.chare = nullptr;
    core.fail_invocation(ended, std::make_exception_ptr(Error(Status::not_found, text)));
  } catch (const std::bad_alloc&) {
    core.fail_job("a chare that was destroyed could not tell who waits for it: memory is exhausted");
  }
}

RunningTask::RunningTask(const Invocation& of) noexcept : invocation(of), next(of.chare->tasks_), since(coarse_now()) {
  if (next != nullptr) next->previous = this;
  of.chare->tasks_ = this;
  retain_message(of);
}

RunningTask::~RunningTask() {
  (previous != nullptr ? previous->next : invocation.chare->tasks_) = next;
  if (next != nullptr) next->previous = previous;
  drop_message(invocation);
}

unsigned Core::run_ready(unsigned limit) {
  unsigned done = 0;
  BatchTime time;
  time_used_up_ = false;
  while (done < limit && !ended_ && !stopping_) {
    am::Message* message = queue_.pop();
    if (message == nullptr) break;
    run(*message);
    ++done;
    if (time_used_up_ || (!queue_.empty() && time.over(done))) break;
  }
  return done;
}

void Core::run(am::Message& message) noexcept {
  ++ran_;
  const CountMark mark(running_);
  const auto envelope = message.header<Envelope>();
  try {
    switch (envelope.kind) {
      case MessageKind::call: return run_call(message, envelope);
      case MessageKind::broadcast: return run_broadcast(message, envelope);
      case MessageKind::multicast: return run_multicast(message, envelope);
      case MessageKind::create: return run_create(message, envelope);
      case MessageKind::insert: return run_insert(message, envelope);
      case MessageKind::destroy: return run_destroy(message, envelope);
      case MessageKind::destroy_all: return run_destroy_all(message, envelope);
      case MessageKind::reply: return run_reply(message, envelope);
      case MessageKind::hello: return run_hello(message, envelope);
      default: on_control(message, envelope); return drop(message);
    }
  } catch (...) {
    Status status;
    fail_job(fmt::format("rank {}: {}", rank_, text_of(std::current_exception(), status)));
  }
}

void Core::invoke(ChareBase& chare, const EntryInfo& entry, am::Message& message, const Envelope& envelope,
                  ReadArchive arguments) noexcept {
  const std::int32_t source = source_of(message);
  const bool answers = envelope.kind == MessageKind::call;
  Invocation invocation{this, &chare, &entry, &message, source, answers ? envelope.reply : 0};
  const BusyMark mark(chare.busy_);
  const EntryTrace traced(engine_.trace(), entry, Trace::flow_of(source, rank_, message.wire.sequence));
  try {
    if (entry.awaited) {
      offer_to_whens(invocation, arguments);
    } else {
      entry.invoke(chare, arguments, invocation);
    }
  } catch (...) {
    fail_invocation(invocation, std::current_exception());
  }
}

void Core::run_call(am::Message& message, const Envelope& envelope) {
  Collection* collection = ready_collection(envelope.collection);
  if (collection == nullptr) [[unlikely]]
    return await_creation(message, envelope);
  const ElementKey key = key_of(message, envelope);
  ChareBase* chare = collection->find(key);
  if (chare == nullptr) [[unlikely]]
    return missing(*collection, message, envelope, key);
  const auto* entry = registry_.find<EntryInfo>(envelope.number, RegisteredKind::entry);
  if (entry == nullptr) [[unlikely]]
    throw Error(Status::internal, "a message names an entry that is none");
  if (chare->leaving_ && put_behind_data(*chare, message, envelope)) [[unlikely]]
    return;
  if (envelope.has_data() && !data_ready(*chare, *entry, message, envelope)) return;
  count_out(message);
  if (envelope.counted()) ++calls_run_;
  invoke(*chare, *entry, message, envelope, arguments_of(chares_, message, envelope));
  drop(message);
}

void Core::run_broadcast(am::Message& message, const Envelope& envelope) {
  Collection* collection = ready_collection(envelope.collection);
  if (collection == nullptr) return await_creation(message, envelope);
  const auto* entry = registry_.find<EntryInfo>(envelope.number, RegisteredKind::entry);
  if (entry == nullptr) throw Error(Status::internal, "a broadcast names an entry that is none");
  if (envelope.has_data()) return fan_out(*collection, message, envelope);
  Notes notes = notes_of(message);
  if ((notes.flags & Notes::kStarted) == 0) {
    notes.flags |= Notes::kStarted;
    notes.end_slot = static_cast<std::uint32_t>(collection->slots().size());  // later ones are not meant
  }
  set_notes(message, notes);
  const std::uint32_t batch_end = std::min(notes.end_slot, notes.next_slot + kBroadcastBatch);
  std::uint32_t slot = notes.next_slot;
  BatchTime time;
  for (unsigned run = 0; slot < batch_end && !time.over(run); ++slot) {
    ChareBase* chare = collection->slots()[slot];
    if (chare == nullptr) continue;
    invoke(*chare, *entry, message, envelope, arguments_of(chares_, message, envelope));
    ++run;
  }
  if (slot < batch_end) note_time_used_up();
  if (slot < notes.end_slot) {
    notes = notes_of(message);  // coroutines may hold it now
    notes.next_slot = slot;
    set_notes(message, notes);
    return queue_.push_front(message);
  }
  count_out(message);
  ++calls_run_;
  drop(message);
}

void Core::run_create(am::Message& message, const Envelope& envelope) {
  Collection* known = find_collection(envelope.collection);  // where it was asked for
  Collection& collection = known != nullptr ? *known : make_collection(message, envelope);
  std::uint16_t number = 0;
  std::memcpy(&number, message.data + sizeof(PlacementRule) + sizeof(number), sizeof(number));
  const auto* constructor = registry_.find<ConstructorInfo>(number, RegisteredKind::constructor);
  try {
    if (collection.dense() && constructor != nullptr) {
      collection.construct_all(*constructor, chares_, message, kCreateBytes);
    }
  } catch (const ConstructionFailed& failed) {
    Status status;
    return fail_job(fmt::format("the constructor of {} on rank {} threw: {}", collection.name_of(failed.key), rank_,
                                text_of(failed.cause, status)));
  }
  collection.ready = true;
  drop(message);
  teams_->collection_ready(collection.id());
  const auto early = unknown_.find(envelope.collection);
  if (early == unknown_.end()) return;
  am::MessageList list = early->second, here;
  unknown_.erase(early);
  while (am::Message* next = list.pop_front()) {
    const auto inner = next->header<Envelope>();
    // What goes by a tree was passed on when it came.
    if (inner.by_tree() || collection.rank_of(key_of(*next, inner)) == rank_) {
      here.push_back(*next);
    } else {
      route(*next);
    }
  }
  run_next(here);
}

/// Puts what had to wait in front of the queue: messages sent later may stand in it already.
void Core::run_next(am::MessageList& list) noexcept {
  am::MessageList reversed;
  while (am::Message* message = list.pop_front()) reversed.push_front(*message);
  while (am::Message* message = reversed.pop_front()) queue_.push_front(*message);
}

void Core::run_insert(am::Message& message, const Envelope& envelope) {
  Collection* collection = ready_collection(envelope.collection);
  if (collection == nullptr) return await_creation(message, envelope);
  const auto* constructor = registry_.find<ConstructorInfo>(envelope.number, RegisteredKind::constructor);
  if (constructor == nullptr) throw Error(Status::internal, "an insertion names a constructor that is none");
  const ElementKey key = key_of(message, envelope);
  const ChareBase* leaving = collection->find(key);
  if (leaving != nullptr && leaving->leaving_ && put_behind_data(*leaving, message, envelope)) return;
  ReadArchive arguments = arguments_of(chares_, message, envelope);
  try {
    collection->construct(key, *constructor, arguments);
  } catch (...) {
    Status status;
    const std::string text = text_of(std::current_exception(), status);
    drop(message);
    return fail_job(fmt::format("the constructor of {} on rank {} threw: {}", collection->name_of(key), rank_, text));
  }
  drop(message);
  const auto early = collection->waiting.find(key);
  if (early == collection->waiting.end()) return;
  am::MessageList list = early->second;
  collection->waiting.erase(early);
  run_next(list);
}

void Core::run_destroy(am::Message& message, const Envelope& envelope) {
  Collection* collection = ready_collection(envelope.collection);
  if (collection == nullptr) return await_creation(message, envelope);
  const ElementKey key = key_of(message, envelope);
  ChareBase* chare = collection->find(key);
  if (chare == nullptr) return missing(*collection, message, envelope, key);
  if (put_behind_data(*chare, message, envelope)) {
    chare->leaving_ = true;
    return;
  }
  drop(message);
  collection->destroy(*chare);
  if (collection->singles()) channel_desk_.forget({collection->id(), key});
}

void Core::run_hello(am::Message& message, const Envelope& envelope) {
  if (channel_desk_.is_refusal(message, envelope)) {
    channel_desk_.on_refusal(message, envelope);
    return drop(message);
  }
  const Collection* collection = find_collection(envelope.collection);
  if (collection == nullptr && has_gone(envelope.collection)) return came_too_late(message, envelope);
  if (collection != nullptr && collection->singles()) {  // no other will ever have its number
    const ElementKey key = key_of(message, envelope);
    if (collection->find(key) == nullptr && collection->was_deleted(key)) {
      return came_late(message, envelope, collection->name_of(key), "the chare was deleted");
    }
  }
  channel_desk_.on_hello(message, envelope);
  drop(message);
}

void Core::run_destroy_all(am::Message& message, const Envelope& envelope) {
  Collection* collection = ready_collection(envelope.collection);
  if (collection == nullptr) return await_creation(message, envelope);
  if (put_behind_data(*collection, message)) return;
  drop(message);
  destroy_collection(*collection);
}

/// The elements, and whatever names the collection here.
void Core::destroy_collection(Collection& collection) {
  const std::uint32_t id = collection.id();
  const std::string name = name_of_array(id);
  std::vector<Waiting> unanswered;
  teams_->forget(id, unanswered);  // before the elements: a reduction of those that are left has no result
  for (std::size_t slot = 0; slot < collection.slots().size(); ++slot) {
    if (ChareBase* chare = collection.slots()[slot]) collection.destroy(*chare);
  }
  am::MessageList late;
  for (auto& [key, list] : collection.waiting) {
    while (am::Message* message = list.pop_front()) late.push_back(*message);
  }
  teams_->forget(id, unanswered);  // what destructors did
  channel_desk_.forget(id);
  last_found_ = nullptr;
  collections_.erase(id);
  for (auto& [section, list] : unknown_sections_) {
    if (list.front() == nullptr || list.front()->header<Envelope>().collection != id) continue;
    while (am::Message* message = list.pop_front()) late.push_back(*message);
  }
  std::erase_if(unknown_sections_, [](const auto& section) { return section.second.front() == nullptr; });
  while (am::Message* message = late.pop_front()) {
    came_late(*message, message->header<Envelope>(), name, "the array was destroyed");
  }
  const auto why = std::make_exception_ptr(
      Error(Status::not_found, fmt::format("{} was destroyed before a reduction of it had ended", name)));
  for (Waiting& waiting : unanswered) waiting.deliver(waiting.storage, nullptr, why);
}

void Core::missing(Collection& collection, am::Message& message, const Envelope& envelope, const ElementKey& key) {
  if (!collection.was_deleted(key)) {  // not inserted yet
    if (envelope.has_data()) stage(message, envelope, false);
    collection.waiting[key].push_back(message);
    return;
  }
  came_late(message, envelope, collection.name_of(key), "the chare was deleted");
}

void Core::await_creation(am::Message& message, const Envelope& envelope) {
  if (has_gone(envelope.collection)) return came_too_late(message, envelope);
  if (envelope.has_data()) stage(message, envelope, false);
  unknown_[envelope.collection].push_back(message);
}

void Core::came_too_late(am::Message& message, const Envelope& envelope) {
  const auto* entry = envelope.counted() ? registry_.find<EntryInfo>(envelope.number, RegisteredKind::entry) : nullptr;
  const std::string whom = entry != nullptr ? fmt::format("{} (array {})", entry->owner, envelope.collection)
                                            : name_of_array(envelope.collection);
  came_late(message, envelope, whom, "the array was destroyed");
}

/// For a chare that is gone: who asked is told; where nobody waits for an answer, the job ends. Two that are gone both
/// have nothing to tell each other.
void Core::came_late(am::Message& message, const Envelope& envelope, const std::string& whom,
                     std::string_view end) noexcept {
  try {
    if (envelope.kind == MessageKind::hello && channel_desk_.is_refusal(message, envelope)) return drop(message);
    const bool calls = envelope.counted();
    const auto* entry = calls ? registry_.find<EntryInfo>(envelope.number, RegisteredKind::entry) : nullptr;
    const std::string what = entry != nullptr                       ? fmt::format("a call of {} of", entry->name)
                             : envelope.kind == MessageKind::insert ? "an insertion into"
                             : envelope.kind == MessageKind::hello  ? "the opening of a channel with"
                                                                    : "a destroy of";
    const std::int32_t source = envelope.by_tree() || envelope.kind == MessageKind::multicast
                                    ? static_cast<std::int32_t>(envelope.reply)
                                    : source_of(message);
    const std::string text = fmt::format(
        "{} {} on rank {} came from rank {} after {}: let its last callers finish before destroy, or make it again",
        what, whom, rank_, source, end);
    if (calls) ++calls_run_;
    if (envelope.kind == MessageKind::call && envelope.reply != 0) {
      fail_invocation({this, nullptr, entry, &message, source, envelope.reply},
                      std::make_exception_ptr(Error(Status::not_found, text)));
    } else {
      fail_job(text);
    }
  } catch (const std::bad_alloc&) {
    fail_job("a message to a chare that is destroyed could not be reported: memory is exhausted");
  }
  drop(message);
}

void Core::fail_invocation(const Invocation& invocation, std::exception_ptr error) noexcept {
  try {
    Status status;
    std::string text = text_of(error, status);
    if (invocation.chare != nullptr) {
      text = fmt::format("{}::{} on rank {} threw: {}", invocation.chare->collection_->name_of(invocation.chare->key_),
                         invocation.entry->name, rank_, text);
    }
    if (invocation.reply == 0) return fail_job(text);
    SizeArchive size;
    size(text);
    Outgoing outgoing = open_reply(invocation, size.size());
    auto& message = *static_cast<am::Message*>(outgoing.message);
    std::memcpy(message.data, &status, sizeof(status));
    WriteArchive write(outgoing.args);
    write(text);
    post(message);
  } catch (...) {
    fail_job("an exception of an entry method could not be reported: memory is exhausted");
  }
}

void Core::fail_waiting(std::uint32_t number, const std::exception_ptr& error) {
  ReplyTable::Entry* line = replies_.find(number);
  if (line == nullptr) return;
  Waiting waiting = replies_.take(*line);
  waiting.deliver(waiting.storage, nullptr, error);
}

void Core::run_reply(am::Message& message, const Envelope& envelope) {
  ReplyTable::Entry* line = replies_.find(envelope.reply);
  if (line == nullptr) return drop(message);
  Waiting waiting = replies_.take(*line);
  Status status = Status::ok;
  std::memcpy(&status, message.data, sizeof(status));
  ReadArchive result(&chares_, message.data + kReplyPrefix, message.bytes - kReplyPrefix);
  count_out(message);
  if (status == Status::ok) {
    waiting.deliver(waiting.storage, &result, nullptr);
  } else {
    std::string text;
    result(text);
    waiting.deliver(waiting.storage, nullptr, std::make_exception_ptr(Error(status, text)));
  }
  drop(message);
}

void Core::run_guarded(ChareBase& chare, const EntryInfo& entry, void (*call)(void*), void* context) {
  ++calls_sent_;
  ++calls_run_;
  const Invocation invocation{this, &chare, &entry, nullptr, rank_, 0};
  const BusyMark mark(chare.busy_);
  try {
    call(context);
  } catch (...) {
    fail_invocation(invocation, std::current_exception());
  }
}

}  // namespace detail
}  // namespace brant
