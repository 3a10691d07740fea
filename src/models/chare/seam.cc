// The plain functions through which the templates of include/brant/chare reach the core.
#include <cstdint>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "brant/chare/array.h"
#include "models/chare/busy_mark.h"
#include "models/chare/core.h"

namespace brant {

Chares& ChareBase::chares() const noexcept { return collection_->core().context().chares; }
std::uint32_t ChareBase::collection_id() const noexcept { return collection_->id(); }

namespace detail {
namespace {

Outgoing open_element(Core& core, Envelope& envelope, const Target& target, std::size_t bytes) {
  envelope.collection = target.collection;
  envelope.key = target.key.word[0];
  const bool wide = target.key.wide();
  if (wide) envelope.flags |= Envelope::kWide;
  am::Message& message = core.messages().make(envelope, bytes + (wide ? kWideBytes : 0));
  if (wide) std::memcpy(message.data, &target.key.word[1], kWideBytes);
  return {&message, message.data + (wide ? kWideBytes : 0)};
}

void set_options(Envelope& envelope, const CallOptions& options) noexcept {
  envelope.priority = options.priority;
  if (options.expedited) envelope.flags |= Envelope::kExpedited;
}

}  // namespace

Core& core_of(Chares& chares) noexcept { return chares.core(); }
Chares& chares_of(Core& core) noexcept { return core.context().chares; }

Outgoing open_call(Core& core, const Target& target, const EntryInfo& entry, const CallOptions& options,
                   std::uint32_t reply, std::size_t bytes) {
  core.scheduler().make_room();
  Envelope envelope;
  envelope.kind = MessageKind::call;
  envelope.number = number_of(entry);
  envelope.reply = reply;
  set_options(envelope, options);
  return open_element(core, envelope, target, bytes);
}

Outgoing open_broadcast(Core& core, std::uint32_t collection, const EntryInfo& entry, const CallOptions& options,
                        std::size_t bytes) {
  core.scheduler().make_room();
  Envelope envelope;
  envelope.collection = collection;
  envelope.kind = MessageKind::broadcast;
  envelope.number = number_of(entry);
  envelope.reply = static_cast<std::uint32_t>(core.context().rank);
  set_options(envelope, options);
  am::Message& message = core.messages().make(envelope, bytes);
  return {&message, message.data};
}

Outgoing open_multicast(Core& core, const GatheringId& gathering, std::uint16_t entry, const CallOptions& options,
                        std::size_t bytes) {
  core.scheduler().make_room();
  Envelope envelope;
  envelope.collection = gathering.collection;
  envelope.kind = MessageKind::multicast;
  envelope.number = entry;
  envelope.reply = static_cast<std::uint32_t>(core.context().rank);
  envelope.key = gathering.section;
  set_options(envelope, options);
  am::Message& message = core.messages().make(envelope, bytes);
  return {&message, message.data};
}

void post(Core& core, Outgoing& outgoing) { core.routing().post(*static_cast<am::Message*>(outgoing.message)); }

ChareBase* local(Core& core, const Target& target) noexcept {
  const Collection* collection = core.collections().find(target.collection);
  return collection == nullptr ? nullptr : collection->find(target.key);
}

ChareBase* idle_local(Core& core, const Target& target) noexcept {
  ChareBase* chare = local(core, target);
  return chare == nullptr || Collection::busy(*chare) ? nullptr : chare;
}

void run_inline(Core& core, ChareBase& chare, const EntryInfo& entry, void (*call)(void*), void* context) {
  Activity& activity = core.activity();
  ++activity.calls_sent;
  ++activity.calls_run;
  const Invocation invocation{&core, &chare, &entry, nullptr, core.context().rank, 0};
  const BusyMark mark(Collection::busy_mark(chare));
  try {
    call(context);
  } catch (...) {
    core.answers().fail(invocation, std::current_exception());
  }
}

namespace {

void check_listed(Core& core, const CollectionShape& shape, const PlacementRule& rule,
                  std::span<const std::int32_t> listed) {
  const auto name = [&] {
    return fmt::format("an array of {} with extent {}", shape.chare_class->owner,
                       index_text(shape.extent, rule.dimensions, 0));
  };
  if (!shape.dense)
    throw Error(Status::invalid_argument, "a list places the elements of a dense array, and of no other");
  if (rule.total() > PlacementRule::kListedMax)
    throw Error(Status::limit_reached,
                fmt::format("{} has {} elements: a list places {} at most. Use a function of C++", name(), rule.total(),
                            PlacementRule::kListedMax));
  if (listed.size() != rule.total())
    throw Error(Status::invalid_argument, fmt::format("{} has {} elements, and the list of its placement {}", name(),
                                                      rule.total(), listed.size()));
  for (std::uint64_t at = 0; at < listed.size(); ++at) {
    if (listed[at] >= 0 && listed[at] < core.context().ranks) continue;
    throw Error(Status::invalid_argument,
                fmt::format("{}: the list of its placement puts {} on rank {}: the job has ranks 0 to {}", name(),
                            index_text(rule.key_at(at), rule.dimensions, 0), listed[at], core.context().ranks - 1));
  }
}

}  // namespace

Outgoing open_create(Core& core, const CollectionShape& shape, std::size_t bytes, std::uint32_t& collection) {
  PlacementRule rule;
  rule.kind = shape.placement->kind();
  rule.dimensions = shape.chare_class->dimensions;
  rule.dense = shape.dense ? 1 : 0;
  rule.extent = shape.extent;
  rule.function = shape.placement->function() != nullptr ? number_of(*shape.placement->function()) : kNoNumber;
  std::span<const std::int32_t> listed;
  if (shape.placement->list() != nullptr) listed = *shape.placement->list();
  if (rule.kind == Placement::Kind::like) {
    const Collection* other = core.collections().find(shape.placement->like_collection());
    if (other == nullptr || other->chare_class().dimensions != rule.dimensions ||
        (rule.dense != 0 && !(other->rule().extent == rule.extent))) {
      throw Error(
          Status::invalid_argument,
          fmt::format("rank {}: an array of {} cannot be placed like {}: {}", core.context().rank,
                      shape.chare_class->owner, other != nullptr ? other->chare_class().owner : "the other",
                      other == nullptr
                          ? "that array was destroyed, or is not known here yet; await a reply of one of its elements"
                          : "both need the same dimensions and extent"));
    }
    rule.kind = other->rule().kind;
    rule.function = other->rule().function;
    if (rule.kind == Placement::Kind::listed) listed = other->listed();
  }
  if (rule.dense != 0 && !rule.can_be_dense()) {
    throw Error(
        Status::invalid_argument,
        fmt::format("an array of {} with extent {}: every dimension needs 1 or more, and less than 2^32 elements "
                    "in all",
                    shape.chare_class->owner, index_text(shape.extent, rule.dimensions, 0)));
  }
  if (rule.kind == Placement::Kind::listed) check_listed(core, shape, rule, listed);
  const auto ranks = static_cast<std::uint64_t>(core.context().ranks);
  if (rule.dense != 0 && (rule.total() - 1) / ranks >= PlacementRule::kElementsPerRankMax) {
    throw Error(
        Status::limit_reached,
        fmt::format("an array of {} with extent {} has {} elements, about {} for each of {} ranks: a rank makes "
                    "{} at most. Let one element do the work of many, or start more ranks",
                    shape.chare_class->owner, index_text(shape.extent, rule.dimensions, 0), rule.total(),
                    rule.total() / ranks, ranks, PlacementRule::kElementsPerRankMax));
  }
  if (!shape.dense && rule.kind == Placement::Kind::block) rule.kind = Placement::Kind::hashed;
  collection = core.collections().new_id();
  Envelope envelope;
  envelope.kind = MessageKind::create;
  envelope.collection = collection;
  envelope.reply = static_cast<std::uint32_t>(core.context().rank);
  const std::size_t arguments_at = kCreateBytes + rule.listed_bytes();
  am::Message& message = core.messages().make(envelope, arguments_at + bytes);
  const std::uint16_t numbers[2]{number_of(*shape.chare_class), shape.dense && shape.constructor != nullptr
                                                                    ? number_of(*shape.constructor)
                                                                    : kNoNumber};
  std::memcpy(message.data, &rule, sizeof(rule));
  std::memcpy(message.data + sizeof(rule), numbers, sizeof(numbers));
  if (arguments_at != kCreateBytes) {
    std::memset(message.data + arguments_at - sizeof(std::uint64_t) * 2, 0, sizeof(std::uint64_t) * 2);
    std::memcpy(message.data + kCreateBytes, listed.data(), listed.size_bytes());
  }
  return {&message, message.data + arguments_at};
}

Outgoing open_insert(Core& core, const Target& target, const ConstructorInfo& constructor, std::size_t bytes) {
  core.scheduler().make_room();
  Envelope envelope;
  envelope.kind = MessageKind::insert;
  envelope.number = number_of(constructor);
  return open_element(core, envelope, target, bytes);
}

Target single_target(Core& core, const ClassInfo& chare_class, std::int32_t rank) {
  if (rank < 0 || rank >= core.context().ranks) {
    throw Error(Status::invalid_argument, fmt::format("a chare {} on rank {}: the job has ranks 0 to {}",
                                                      chare_class.owner, rank, core.context().ranks - 1));
  }
  core.scheduler().make_room();  // before it is counted: no other that is made while this waits may be told of first
  return {kSinglesBit | number_of(chare_class),
          SingleNumber{rank, core.context().rank, core.collections().new_single()}.key()};
}

void post_destroy(Core& core, const Target& target) {
  Envelope envelope;
  envelope.kind = MessageKind::destroy;
  Outgoing outgoing = open_element(core, envelope, target, 0);
  post(core, outgoing);
}

void post_destroy_all(Core& core, std::uint32_t collection) {
  Envelope envelope;
  envelope.kind = MessageKind::destroy_all;
  envelope.collection = collection;
  envelope.reply = static_cast<std::uint32_t>(core.context().rank);
  core.routing().post(core.messages().make(envelope, 0));
}

Outgoing open_hello(Core& core, const Target& target, std::size_t bytes) {
  Envelope envelope;
  envelope.kind = MessageKind::hello;
  return open_element(core, envelope, target, bytes);
}

Future<Channel> open_channel(Core& core, const Target& mine, const Target& theirs, const ChareChannelOptions& options) {
  return core.channel_desk().open(mine, theirs, options);
}

void throw_outside(Core& core, const ClassInfo& chare_class, const ElementKey& index, const ElementKey& extent) {
  throw Error(Status::invalid_argument,
              fmt::format("{}{} (asked for on rank {}) is outside the array, whose extent is {}: each coordinate is 0 "
                          "or more and below the extent",
                          chare_class.owner, index_text(index, chare_class.dimensions, chare_class.index_bytes),
                          core.context().rank, index_text(extent, chare_class.dimensions, chare_class.index_bytes)));
}

std::uint32_t expect_reply(Core& core, const Waiting& waiting, const Target& target, const EntryInfo& entry) {
  // Nobody else ends the promise that lies in there.
  const auto refuse = [&](const std::exception_ptr& why) {
    Waiting refused = waiting;
    refused.deliver(refused.storage, nullptr, why);
  };
  try {
    core.scheduler().make_room();
  } catch (...) {
    refuse(std::current_exception());
    throw;
  }
  const std::uint32_t number = core.answers().waiting().add(waiting, {target, &entry});
  if (number == 0) {
    refuse(std::make_exception_ptr(Error(Status::limit_reached, "a million replies are waited for already")));
    throw Error(Status::limit_reached,
                fmt::format("rank {} waits for a million replies already: await some before asking for more",
                            core.context().rank));
  }
  return number;
}

Outgoing open_reply(const Invocation& invocation, std::size_t bytes) {
  am::Message& message = invocation.core->answers().open(invocation, bytes);
  return {&message, message.data + kReplyPrefix};
}

void fail_invocation(const Invocation& invocation, std::exception_ptr error) noexcept {
  invocation.core->answers().fail(invocation, std::move(error));
}

void retain_message(const Invocation& invocation) noexcept {
  auto& message = *static_cast<am::Message*>(invocation.message);
  Notes notes = notes_of(message);
  ++notes.holders;
  set_notes(message, notes);
}

void drop_message(const Invocation& invocation) noexcept {
  invocation.core->messages().drop(*static_cast<am::Message*>(invocation.message));
}

void name_class(Collection& collection, std::string_view name) { collection.set_class_name(name); }

CollectionView view_of(const Collection& collection) noexcept {
  return {collection.id(), collection.dense(), collection.rule().extent};
}

const Collection& collection_of(const ChareBase& chare) noexcept { return Collection::of(chare); }

}  // namespace detail
}  // namespace brant
