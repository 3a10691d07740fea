#include "models/chare/collections.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "models/chare/gatherings.h"

namespace brant::detail {

Collections::Collections(const ProgramContext& context) noexcept
    : context_(context), ids_(kSinglesBit, context.ranks) {}

Collection* Collections::look_up(std::uint32_t id) {
  const auto found = by_id_.find(id);
  if (found != by_id_.end()) return last_found_ = found->second.get();
  if ((id & kSinglesBit) == 0) return nullptr;
  const auto* chare_class =
      context_.registry.find<ClassInfo>(static_cast<std::uint16_t>(id & 0xffff), RegisteredKind::chare_class);
  if (chare_class == nullptr) return nullptr;
  auto made = std::make_unique<Collection>(*this, context_, id, *chare_class, PlacementRule{}, nullptr);
  made->ready = true;
  return last_found_ = by_id_.emplace(id, std::move(made)).first->second.get();
}

Collection& Collections::make(const am::Message& message, const Envelope& envelope) {
  PlacementRule rule;
  std::uint16_t number = 0;
  std::memcpy(&rule, message.data, sizeof(rule));
  std::memcpy(&number, message.data + sizeof(rule), sizeof(number));
  const auto* chare_class = context_.registry.find<ClassInfo>(number, RegisteredKind::chare_class);
  if (chare_class == nullptr) throw Error(Status::internal, "a collection of a class that is none");
  const auto* function = context_.registry.find<PlacementInfo>(rule.function, RegisteredKind::placement);
  std::vector<std::int32_t> listed(rule.listed_bytes() != 0 ? rule.total() : 0);
  if (!listed.empty()) std::memcpy(listed.data(), message.data + kCreateBytes, listed.size() * sizeof(listed[0]));
  auto made = std::make_unique<Collection>(*this, context_, envelope.collection, *chare_class, rule, function,
                                           std::move(listed));
  ids_.note_made(envelope.collection);
  return *by_id_.insert_or_assign(envelope.collection, std::move(made)).first->second;
}

std::uint32_t Collections::new_id() {
  for (std::uint32_t tried = 0; tried <= by_id_.size(); ++tried) {
    const std::uint32_t id = ids_.next(context_.rank);
    if (!by_id_.contains(id)) return id;
  }
  throw Error(Status::limit_reached,
              fmt::format("rank {} has {} arrays of chares: no number is left for another; destroy some", context_.rank,
                          by_id_.size()));
}

std::string Collections::name_of(const Target& target) {
  const Collection* collection = find(target.collection);
  return collection != nullptr ? collection->name_of(target.key) : fmt::format("array {}", target.collection);
}

std::string Collections::name_of_array(std::uint32_t id) {
  const Collection* collection = find(id);
  return collection != nullptr ? fmt::format("{} (array {})", collection->class_name(), id)
                               : fmt::format("array {}", id);
}

Gatherings& Collections::make_gatherings() {
  const Target target = Gatherings::target_on(context_.rank);
  Collection& own = *find(target.collection);
  ReadArchive nothing(&context_.chares, nullptr, 0);
  own.construct(target.key, ConstructorOf<Gatherings>::get(), nothing);
  gatherings_ = static_cast<Gatherings*>(own.find(target.key));
  return *gatherings_;
}

void Collections::erase(std::uint32_t id) noexcept {
  last_found_ = nullptr;
  by_id_.erase(id);
}

Collections::ById Collections::take_all() noexcept {
  last_found_ = nullptr;
  return std::exchange(by_id_, {});
}

std::uint32_t Collections::first_round(std::uint32_t id) noexcept {
  return gatherings_ != nullptr ? gatherings_->first_round(id) : 0;
}

void Collections::element_made(const Collection& collection, std::uint32_t first_round) {
  if (gatherings_ != nullptr) gatherings_->born(collection, first_round);
}

void Collections::element_gone(const Collection& collection, const ChareBase& element, Gone how) noexcept {
  gatherings_->gone(collection, element, how);
}

}  // namespace brant::detail
