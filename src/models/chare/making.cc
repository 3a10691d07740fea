#include "models/chare/making.h"

#include <cstring>
#include <exception>

#include <fmt/format.h>

#include "base/error_text.h"
#include "models/chare/gatherings.h"

namespace brant::detail {

Making::Making(const ProgramContext& context, Collections& collections, DataCalls& data_calls, Messages& messages,
               ReadyQueue& queue, Ending& ending, ChannelDesk& desk, Latecomers& latecomers, Following& following,
               Routing& routing) noexcept
    : context_(context),
      collections_(collections),
      data_calls_(data_calls),
      messages_(messages),
      queue_(queue),
      ending_(ending),
      desk_(desk),
      latecomers_(latecomers),
      following_(following),
      routing_(routing) {}

void Making::fail(const std::string& element, const std::exception_ptr& cause) {
  Status status;
  ending_.fail_job(
      fmt::format("the constructor of {} on rank {} threw: {}", element, context_.rank, text_of(cause, status)));
}

void Making::run_create(am::Message& message, const Envelope& envelope) {
  Collection* known = collections_.find(envelope.collection);  // where it was asked for
  Collection& collection = known != nullptr ? *known : collections_.make(message, envelope);
  std::uint16_t number = 0;
  std::memcpy(&number, message.data + sizeof(PlacementRule) + sizeof(number), sizeof(number));
  const auto* constructor = context_.registry.find<ConstructorInfo>(number, RegisteredKind::constructor);
  try {
    if (collection.dense() && constructor != nullptr) {
      collection.construct_all(*constructor, context_.chares, message, kCreateBytes + collection.rule().listed_bytes());
    }
  } catch (const ConstructionFailed& failed) {
    return fail(collection.name_of(failed.key), failed.cause);
  }
  collection.ready = true;
  messages_.drop(message);
  collections_.gatherings().collection_ready(collection.id());
  am::MessageList list = latecomers_.take_awaiting(envelope.collection), here;
  while (am::Message* next = list.pop_front()) {
    const auto inner = next->header<Envelope>();
    if (following_.may_concern(inner) && following_.take(*next, inner)) continue;
    // What goes by a tree was passed on when it came.
    if (inner.by_tree() || collection.rank_of(key_of(*next, inner)) == context_.rank) {
      here.push_back(*next);
    } else {
      routing_.route(*next);
    }
  }
  queue_.push_front(here);
}

void Making::run_insert(am::Message& message, const Envelope& envelope) {
  Collection* collection = collections_.ready(envelope.collection);
  if (collection == nullptr) return latecomers_.await_creation(message, envelope);
  const auto* constructor = context_.registry.find<ConstructorInfo>(envelope.number, RegisteredKind::constructor);
  if (constructor == nullptr) throw Error(Status::internal, "an insertion names a constructor that is none");
  const ElementKey key = key_of(message, envelope);
  const ChareBase* leaving = collection->find(key);
  if (leaving != nullptr && Collection::leaving(*leaving).any() && data_calls_.put_behind(*leaving, message, envelope))
    return;
  ReadArchive arguments = arguments_of(context_.chares, message, envelope);
  try {
    collection->construct(key, *constructor, arguments);
  } catch (...) {
    fail(collection->name_of(key), std::current_exception());
    return messages_.drop(message);
  }
  messages_.drop(message);
  am::MessageList early = collection->take_waiting(key);
  queue_.push_front(early);
}

void Making::run_destroy(am::Message& message, const Envelope& envelope) {
  Collection* collection = collections_.ready(envelope.collection);
  if (collection == nullptr) return latecomers_.await_creation(message, envelope);
  const ElementKey key = key_of(message, envelope);
  ChareBase* chare = collection->find(key);
  if (chare == nullptr && collection->places() != nullptr &&
      !collection->places()->directory.lives_here(collection->identity_of(key))) {
    ending_.fail_job(fmt::format("{} cannot be destroyed: it has moved away from rank {}; move it home first",
                                 collection->name_of(key), context_.rank));
    return messages_.drop(message);
  }
  if (chare == nullptr) return latecomers_.await_element(*collection, message, envelope, key);
  if (data_calls_.put_behind(*chare, message, envelope)) {
    Collection::leaving_mark(*chare).destroyed = true;
    return;
  }
  messages_.drop(message);
  collection->destroy(*chare);
  if (collection->singles()) desk_.forget({collection->id(), key});
}

void Making::run_destroy_all(am::Message& message, const Envelope& envelope) {
  Collection* collection = collections_.ready(envelope.collection);
  if (collection == nullptr) return latecomers_.await_creation(message, envelope);
  if (data_calls_.put_behind(*collection, message)) return;
  messages_.drop(message);
  destroy(*collection);
}

/// The elements, and whatever names the collection here.
void Making::destroy(Collection& collection) {
  const std::uint32_t id = collection.id();
  const std::string name = collections_.name_of_array(id);
  std::vector<Waiting> unanswered;
  collections_.gatherings().forget(
      id, unanswered);  // before the elements: a reduction of those that are left has no result
  for (std::size_t slot = 0; slot < collection.slots().size(); ++slot) {
    if (ChareBase* chare = collection.slots()[slot]) collection.destroy(*chare);
  }
  am::MessageList late;
  for (auto& [key, list] : collection.waiting) {
    while (am::Message* message = list.pop_front()) late.push_back(*message);
  }
  collections_.gatherings().forget(id, unanswered);  // what destructors did
  am::MessageList following = following_.take_all(collection);
  while (am::Message* message = following.pop_front()) late.push_back(*message);
  desk_.forget(id);
  collections_.erase(id);
  latecomers_.take_of_sections(id, late);
  while (am::Message* message = late.pop_front()) {
    latecomers_.came_late(*message, message->header<Envelope>(), name, "the array was destroyed");
  }
  const auto why = std::make_exception_ptr(
      Error(Status::not_found, fmt::format("{} was destroyed before a reduction of it had ended", name)));
  for (Waiting& waiting : unanswered) waiting.deliver(waiting.storage, nullptr, why);
}

}  // namespace brant::detail
