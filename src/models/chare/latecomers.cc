#include "models/chare/latecomers.h"

#include <new>

#include <fmt/format.h>

namespace brant::detail {

Latecomers::Latecomers(const ProgramContext& context, Activity& activity, Collections& collections,
                       const ChannelDesk& desk, DataLandings& landings, Messages& messages, ReadyQueue& queue,
                       Answers& answers, Ending& ending) noexcept
    : context_(context),
      activity_(activity),
      collections_(collections),
      desk_(desk),
      landings_(landings),
      messages_(messages),
      queue_(queue),
      answers_(answers),
      ending_(ending) {}

void Latecomers::await_creation(am::Message& message, const Envelope& envelope) {
  if (collections_.has_gone(envelope.collection)) return came_too_late(message, envelope);
  if (envelope.has_data()) landings_.stage(message, envelope, false);
  uncreated_[envelope.collection].push_back(message);
}

void Latecomers::await_element(Collection& collection, am::Message& message, const Envelope& envelope,
                               const ElementKey& key) {
  if (!collection.was_deleted(key)) {  // not inserted yet
    if (envelope.has_data()) landings_.stage(message, envelope, false);
    collection.waiting[key].push_back(message);
    return;
  }
  came_late(message, envelope, collection.name_of(key), "the chare was deleted");
}

void Latecomers::section_known(std::uint64_t section) {
  const auto early = undefined_.find(section);
  if (early == undefined_.end()) return;
  am::MessageList list = early->second;
  undefined_.erase(early);
  queue_.push_front(list);
}

void Latecomers::came_late(am::Message& message, const Envelope& envelope, const std::string& whom,
                           std::string_view end) noexcept {
  try {
    if (envelope.kind == MessageKind::hello && desk_.is_refusal(message, envelope)) return messages_.drop(message);
    const bool calls = envelope.counted();
    const auto* entry = calls ? context_.registry.find<EntryInfo>(envelope.number, RegisteredKind::entry) : nullptr;
    const std::string what = entry != nullptr                       ? fmt::format("a call of {} of", entry->name)
                             : envelope.kind == MessageKind::insert ? "an insertion into"
                             : envelope.kind == MessageKind::hello  ? "the opening of a channel with"
                                                                    : "a destroy of";
    const std::int32_t source = envelope.by_tree() || envelope.kind == MessageKind::multicast
                                    ? static_cast<std::int32_t>(envelope.reply)
                                    : context_.source_of(message);
    const std::string text = fmt::format(
        "{} {} on rank {} came from rank {} after {}: let its last callers finish before destroy, or make it again",
        what, whom, context_.rank, source, end);
    if (calls) ++activity_.calls_run;
    if (envelope.kind == MessageKind::call && envelope.reply != 0) {
      answers_.fail({&context_.core, nullptr, entry, &message, source, envelope.reply},
                    std::make_exception_ptr(Error(Status::not_found, text)));
    } else {
      ending_.fail_job(text);
    }
  } catch (const std::bad_alloc&) {
    ending_.fail_job("a message to a chare that is destroyed could not be reported: memory is exhausted");
  }
  messages_.drop(message);
}

void Latecomers::came_too_late(am::Message& message, const Envelope& envelope) {
  const auto* entry =
      envelope.counted() ? context_.registry.find<EntryInfo>(envelope.number, RegisteredKind::entry) : nullptr;
  const std::string whom = entry != nullptr ? fmt::format("{} (array {})", entry->owner, envelope.collection)
                                            : collections_.name_of_array(envelope.collection);
  came_late(message, envelope, whom, "the array was destroyed");
}

am::MessageList Latecomers::take_awaiting(std::uint32_t collection) {
  const auto early = uncreated_.find(collection);
  if (early == uncreated_.end()) return {};
  const am::MessageList list = early->second;
  uncreated_.erase(early);
  return list;
}

void Latecomers::await_section(am::Message& message, const Envelope& envelope) {
  undefined_[envelope.key].push_back(message);
}

void Latecomers::take_of_sections(std::uint32_t collection, am::MessageList& list) {
  for (auto& [section, early] : undefined_) {
    if (early.front() == nullptr || early.front()->header<Envelope>().collection != collection) continue;
    while (am::Message* message = early.pop_front()) list.push_back(*message);
  }
  std::erase_if(undefined_, [](const auto& section) { return section.second.front() == nullptr; });
}

const am::Message* Latecomers::first_uncreated_call() const noexcept {
  for (const auto& [id, list] : uncreated_) {
    const am::Message* first = list.front();
    if (first != nullptr && first->header<Envelope>().counted()) return first;
  }
  return nullptr;
}

const am::Message* Latecomers::first_undefined() const noexcept {
  for (const auto& [id, list] : undefined_) {
    if (list.front() != nullptr) return list.front();
  }
  return nullptr;
}

void Latecomers::let_all_go() noexcept {
  for (auto& [id, list] : uncreated_) {
    while (am::Message* message = list.pop_front()) messages_.let_go(*message);
  }
  for (auto& [id, list] : undefined_) {
    while (am::Message* message = list.pop_front()) messages_.let_go(*message);
  }
}

}  // namespace brant::detail
