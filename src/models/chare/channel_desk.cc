#include "models/chare/channel_desk.h"

#include <cstring>
#include <exception>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "ops/channel/reserved_ids.h"
#include "ops/channel/table.h"

namespace brant::detail {
namespace {

/// Counts the ids that this rank gave out, over all programs of a runtime: an id that was closed may still have
/// messages under way.
struct ChareChannelIds final : Service {
  explicit ChareChannelIds(Engine&) noexcept {}
  std::uint32_t given = 0;
};

std::uint64_t name_key(std::uint32_t channel, std::uint32_t side) noexcept {
  return std::uint64_t{channel} << 1 | side;
}

}  // namespace

bool ChannelDesk::Key::operator<(const Key& other) const noexcept {
  return std::tie(my_collection, my_key.word, their_collection, their_key.word, number) <
         std::tie(other.my_collection, other.my_key.word, other.their_collection, other.their_key.word, other.number);
}

bool ChannelDesk::Key::brings_id() const noexcept {
  return std::tie(my_collection, my_key.word) < std::tie(their_collection, their_key.word);
}

std::uint32_t ChannelDesk::new_id() {
  constexpr std::uint32_t ids = reserved_id::kDataLanes - reserved_id::kChareChannels;
  const std::uint32_t share = ids / static_cast<std::uint32_t>(context_.ranks);
  std::uint32_t& given = context_.engine.service<ChareChannelIds>().given;
  if (given >= share) {
    throw Error(Status::limit_reached,
                fmt::format("rank {} has opened {} channels between chares: no id is left in its "
                            "share. Keep channels open instead of opening new ones",
                            context_.rank, given));
  }
  return reserved_id::kChareChannels + static_cast<std::uint32_t>(context_.rank) * share + given++;
}

Future<Channel> ChannelDesk::open(const Target& mine, const Target& theirs, const ChareChannelOptions& options) {
  if (mine.collection == theirs.collection && mine.key == theirs.key) {
    throw Error(Status::invalid_argument, fmt::format("{} opens a channel to itself: a channel has two ends, name "
                                                      "another chare",
                                                      collections_.name_of(mine)));
  }
  const Key key{mine.collection, mine.key, theirs.collection, theirs.key, options.number};
  Meeting& meeting = meetings_[key];
  meeting.asked.emplace();  // an earlier one, of a chare that is gone, is given up
  meeting.path = options.path;
  meeting.since = coarse_now();
  Future<Channel> future = meeting.asked->future();
  if (!std::exchange(meeting.greeted, true)) {
    if (key.brings_id()) meeting.id = new_id();
    greet(key, context_.rank, meeting.id);
  }
  open_if_met(key);
  return future;
}

void ChannelDesk::greet(const Key& key, std::int32_t rank, std::uint32_t id) {
  const Hello hello{key.my_collection, key.number, key.my_key, rank, id};
  Outgoing outgoing = open_hello(context_.core, {key.their_collection, key.their_key}, sizeof(hello));
  std::memcpy(outgoing.args, &hello, sizeof(hello));
  post(context_.core, outgoing);
}

ChannelDesk::Hello ChannelDesk::hello_in(const am::Message& message, const Envelope& envelope) const {
  Hello hello;
  ReadArchive arguments = arguments_of(context_.chares, message, envelope);
  std::memcpy(&hello, arguments.take(sizeof(hello)), sizeof(hello));
  return hello;
}

ChannelDesk::Key ChannelDesk::key_for(const am::Message& message, const Envelope& envelope, const Hello& hello) {
  return {envelope.collection, key_of(message, envelope), hello.collection, hello.key, hello.number};
}

void ChannelDesk::on_hello(const am::Message& message, const Envelope& envelope) {
  const Hello hello = hello_in(message, envelope);
  const Key key = key_for(message, envelope, hello);
  Meeting& meeting = meetings_[key];
  meeting.rank = hello.rank;
  if (hello.id != 0) meeting.id = hello.id;
  open_if_met(key);
}

bool ChannelDesk::is_refusal(const am::Message& message, const Envelope& envelope) const {
  return hello_in(message, envelope).rank == Hello::kGone;
}

void ChannelDesk::on_refusal(const am::Message& message, const Envelope& envelope) {
  const auto found = meetings_.find(key_for(message, envelope, hello_in(message, envelope)));
  if (found == meetings_.end()) return;
  std::optional<Promise<Channel>> asked = std::move(found->second.asked);
  const Target mine{found->first.my_collection, found->first.my_key};
  const Target theirs{found->first.their_collection, found->first.their_key};
  meetings_.erase(found);  // before anybody is told, who may ask again
  if (!asked) return;
  asked->fail(std::make_exception_ptr(Error(
      Status::not_found, fmt::format("the channel of {} to {} will never open: that was destroyed before it asked "
                                     "for its end",
                                     collections_.name_of(mine), collections_.name_of(theirs)))));
}

void ChannelDesk::open_if_met(const Key& key) {
  const auto found = meetings_.find(key);
  Meeting& meeting = found->second;
  if (!meeting.asked || meeting.rank < 0) return;
  Promise<Channel> promise = std::move(*meeting.asked);
  const Rank peer{meeting.rank};
  const ChannelId id{meeting.id};
  const Path path = meeting.path;
  meetings_.erase(found);  // before anybody is told, who may ask again
  try {
    // One end may have done its work and closed before the other opens: within a process the names say which is which.
    const unsigned side = key.brings_id() ? 0 : 1;
    Channel channel = Channel::open_reserved(context_.chares.runtime(), peer, id, {path}, side);
    note_names(channel, {{key.my_collection, key.my_key}, {key.their_collection, key.their_key}});
    promise.deliver(std::move(channel));
  } catch (...) {
    promise.fail(std::current_exception());
  }
}

void ChannelDesk::note_names(const Channel& channel, const Names& names) {
  if (names_.size() >= names_max_) {
    const auto& table = context_.engine.service<ChannelTable>();
    std::erase_if(names_, [&](const auto& named) {
      const ChannelId id{static_cast<std::uint32_t>(named.first >> 1)};
      return table.open_end(id, static_cast<unsigned>(named.first & 1), context_.engine.job().rank) == nullptr;
    });
    names_max_ = std::max<std::size_t>(64, 2 * names_.size());
  }
  names_.insert_or_assign(name_key(channel.id().value, channel.side()), names);
}

void ChannelDesk::forget(std::uint32_t collection, const ElementKey* key) {
  auto at = meetings_.lower_bound({collection, key != nullptr ? *key : ElementKey{}, 0, {}, 0});
  while (at != meetings_.end() && at->first.my_collection == collection &&
         (key == nullptr || at->first.my_key == *key)) {
    const auto gone = meetings_.extract(at++);
    if (gone.mapped().rank >= 0) greet(gone.key(), Hello::kGone, 0);  // the other end has asked, and waits
  }
}

const ChannelDesk::Names* ChannelDesk::names(std::uint32_t channel, std::uint32_t side) const noexcept {
  const auto found = names_.find(name_key(channel, side));
  return found != names_.end() ? &found->second : nullptr;
}

bool ChannelDesk::holds_end_of(const Target& chare) const noexcept {
  for (const auto& [key, meeting] : meetings_) {
    if (key.my_collection == chare.collection && key.my_key == chare.key) return true;
  }
  const auto& table = context_.engine.service<ChannelTable>();
  for (const auto& [name, names] : names_) {
    if (names.mine.collection != chare.collection || !(names.mine.key == chare.key)) continue;
    const ChannelId id{static_cast<std::uint32_t>(name >> 1)};
    if (table.open_end(id, static_cast<unsigned>(name & 1), context_.rank) != nullptr) return true;
  }
  return false;
}

std::vector<ChannelDesk::Unmet> ChannelDesk::unmet() const {
  std::vector<Unmet> unmet;
  for (const auto& [key, meeting] : meetings_) {
    if (!meeting.asked) continue;
    const Names names{{key.my_collection, key.my_key}, {key.their_collection, key.their_key}};
    unmet.push_back({names, key.number, meeting.since});
  }
  return unmet;
}

}  // namespace brant::detail
