#include "ops/channel/table.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "core/am_ids.h"
#include "core/link_services.h"
#include "ops/channel/reserved_ids.h"
#include "ops/channel/tag.h"

namespace brant {
namespace {

/// Its ends are nobody's any more.
bool is_gone(const Peer* peer) noexcept { return peer == nullptr || peer->lost; }

/// Both ends see this, and both refuse: one of them waits for tags, the other for records.
void refuse_unlike(ChannelEndpoint& endpoint, const AnnouncedEnds::Announced& other) noexcept {
  if (endpoint.by_network() != other.linked) return;
  log::error(
      "channel {} between ranks {} and {}: one end is forced to path ucx, the other is not. Force the path of both "
      "ends, or of neither (BRANT_PATH for all)",
      endpoint.id().value, endpoint.engine().job().rank, other.rank);
  endpoint.refuse(Status::invalid_argument);
}

}  // namespace

ChannelTable::ChannelTable(Engine& engine)
    : engine_(engine),
      own_rank_(engine.job().rank),
      controls_(
          engine,
          [](void* self, const ChannelControl& control) noexcept {
            static_cast<ChannelTable*>(self)->take_control(control);
          },
          this),
      mappings_(MappingTable::of(engine)),
      mover_(engine.service<Mover>()),
      stages_(mover_.stages()),
      stall_(*this) {
  engine.held_messages().claim(am_id::kChannelControl, &ChannelTable::on_control, this);
  engine.links().claim(link_service::kChannel, &ChannelTable::on_record, this);
  engine.peers().look_at_links(link_service::kChannel);  // what was said of ends before this one is opened
}

LinkPump& ChannelTable::pump(Peer& peer) {
  ChannelPeer& known = with(peer);
  if (known.pump == nullptr) known.pump = std::make_unique<LinkPump>(engine_, peer, *mappings_);
  mover_.open();
  return *known.pump;
}

ChannelEndpoint& ChannelTable::open(Rank peer_rank, ChannelId id, Path forced, std::optional<unsigned> own_side) {
  if (id.value > reserved_id::kLast) {
    throw Error(Status::invalid_argument,
                fmt::format("channel id {} does not fit in 28 bits: use 0 to {}", id.value, kChannelIdMax));
  }
  Peer& peer = engine_.peers().connect(peer_rank);
  const int self = engine_.job().rank;
  unsigned side = 1 - side_of(peer_rank.value);
  if (peer.same_process) {
    side = own_side.value_or(open_end(id, 0, self) == nullptr ? 0u : 1u);
  }
  ChannelEndpoint* holder = open_end(id, side, peer_rank.value);
  if (holder == nullptr && !peer.same_process) holder = open_end(id, 1 - side, peer_rank.value);
  if (holder != nullptr) {
    throw Error(Status::invalid_argument,
                fmt::format("channel {} is open already (rank {} with rank {}): close it first, or use another id",
                            id.value, self, holder->peer().rank.value));
  }
  mover_.open();  // not within the first copy, beside which a kernel may stay that a load would wait for
  if (forced == Path::automatic) forced = engine_.options().path;
  const auto known = endpoints_.find(end_key(id, side, peer_rank.value));
  ChannelEndpoint* endpoint = known != endpoints_.end() ? known->second.get() : &make_end(peer, id, side, forced);
  ChannelEndpoint*& place = open_ends_[open_key(id, side, peer_rank.value)];
  endpoint->reopen(forced);  // the last that may find no memory
  place = endpoint;
  const AnnouncedEnds::Announced* announced = announced_.find(id, 1 - side, peer_rank.value);
  if (announced != nullptr && is_gone(engine_.peers().find(announced->rank))) announced = nullptr;
  if (announced != nullptr && announced->rank != peer_rank.value) {
    const int who = announced->rank;
    endpoint->closing().close();
    throw Error(Status::invalid_argument,
                fmt::format("channel {}: rank {} opens it with rank {}, but its other end is at rank {}", id.value,
                            self, peer_rank.value, who));
  }
  controls_.send(endpoint->shared(), {ChannelControl::Kind::opened, static_cast<std::uint16_t>(side), id.value,
                                      peer.rank_there, endpoint->by_network() ? 0u : 1u, 0, 0});
  if (announced != nullptr) {
    endpoint->closing().on_opened();
    refuse_unlike(*endpoint, *announced);
  }
  endpoint->closing().end_if_known();
  return *endpoint;
}

ChannelEndpoint* ChannelTable::open_end(ChannelId id, unsigned side, std::int32_t rank) const noexcept {
  const auto found = open_ends_.find(open_key(id, side, rank));
  return found == open_ends_.end() ? nullptr : found->second;
}

/// Not open yet.
ChannelEndpoint& ChannelTable::make_end(Peer& peer, ChannelId id, unsigned side, Path forced) {
  auto end = std::make_unique<ChannelEndpoint>(*this, peer, id, side, forced);
  std::unique_ptr<ChannelEndpoint>& place = endpoints_[end_key(id, side, peer.rank.value)];  // the last that may throw
  if (const auto before = end->shared().closed.extract(side_key(id, side))) end->closing().resume(before.mapped());
  place = std::move(end);
  const auto other = endpoints_.find(end_key(id, 1 - side, peer.rank.value));
  if (peer.same_process && other != endpoints_.end()) place->local()->meet(*other->second->local());
  place->closing().await_open();
  return *place;
}

void ChannelTable::forget_later(ChannelEndpoint& endpoint) noexcept {
  if (SettledEnds::linked(endpoint)) return;
  settled_.push_back(endpoint);
  engine_.pollers().attach(*this);
}

unsigned ChannelTable::poll() noexcept {
  unsigned forgotten = 0;
  bool of_the_lost = false;
  while (ChannelEndpoint* end = settled_.pop_front()) {
    if (!end->closing().settled()) continue;  // opened again, or something came
    try {
      end->shared().remember(side_key(end->id(), end->side()), end->closing().rest());
    } catch (const std::bad_alloc&) {
      continue;  // it stays as it is
    }
    of_the_lost = of_the_lost || end->peer().lost;
    last_end_ = nullptr;
    endpoints_.erase(end_key(end->id(), end->side(), end->peer().rank.value));
    ++forgotten;
  }
  if (of_the_lost) engine_.deferrals().defer(*this);
  engine_.pollers().detach(*this);
  return forgotten;
}

void ChannelTable::run_deferred() noexcept {
  for (auto& [rank, known] : peers_) {
    const auto with_it = [&](const auto& end) { return &end.second->peer() == &known.peer; };
    if (known.peer.lost && std::ranges::none_of(endpoints_, with_it)) known.pump.reset();
  }
}

std::size_t ChannelTable::ends_remembered() const noexcept {
  std::size_t count = 0;
  for (const auto& [rank, known] : peers_) count += known.closed.size();
  return count;
}

bool ChannelTable::forget(Peer& peer) noexcept {
  const std::int32_t rank = peer.rank.value;
  const auto with_peer = [&](const auto& end) { return &end.second->peer() == &peer; };
  if (std::ranges::any_of(endpoints_, with_peer)) return false;
  const auto known = peers_.find(rank);  // a pump goes outside progress
  if (known != peers_.end() && (known->second.pump != nullptr || known->second.controls_waiting != 0)) return false;
  peers_.erase(rank);
  announced_.remove_all_of(rank);
  drop_unread_of(rank);
  return true;
}

/// What a peer that is gone sent by tags, and nobody received: a tag has room for sixteen uses of a slot, so one of the
/// next peers in it would receive that. Whatever came from the slot before goes too.
void ChannelTable::drop_unread_of(std::int32_t rank) noexcept {
  if (static_cast<std::uint32_t>(engine_.job().size) > joined_rank::kApart) return;  // ranks of the job have such tags
  constexpr std::uint64_t kOfSlot = std::uint64_t{joined_rank::kApart | (joined_rank::kSlots - 1)} << tag::kRankShift;
  constexpr std::uint64_t kOfType = tag::kChannelReceiveMask >> tag::kTypeShift << tag::kTypeShift;
  const std::uint64_t tag = tag::channel(tag::Type::channel, ChannelId{}, {rank, 0}, 0);
  engine_.wire().drop_unread(tag, kOfType | kOfSlot);
}

void ChannelTable::on_control(void* self, port::AmMessage& message) noexcept {
  auto& table = *static_cast<ChannelTable*>(self);
  ChannelControl control;
  if (!read_channel_control(message.header, control)) [[unlikely]] {
    table.engine_.wire().am_discard(message);
    return table.engine_.peers().distrust(control.sender_rank, "a control message of channels that contradicts itself");
  }
  const Peer* sender = table.engine_.peers().find(control.sender_rank);
  if (sender == nullptr || (!sender->same_process && control.sender_side != table.side_of(control.sender_rank)))
      [[unlikely]] {
    return table.engine_.peers().distrust(control.sender_rank, "a control message of the wrong end of a channel");
  }
  if (!sender->lost) table.take_control(control);  // else nothing waits for it any more
}

void ChannelTable::take_control(const ChannelControl& control) noexcept {
  if (const auto known = peers_.find(control.sender_rank); known != peers_.end()) known->second.patience.heard_from();
  if (control.kind == ChannelControl::Kind::opened) return check_opened(control);
  if (control.kind == ChannelControl::Kind::last) return on_last_word(control);
  // From now on that end may lie elsewhere.
  if (control.kind == ChannelControl::Kind::closed) announced_.remove(control);
  try {
    if (ChannelEndpoint* end = end_of_control(control)) end->on_control(control);
  } catch (const std::bad_alloc&) {
    no_end_for(*engine_.peers().find(control.sender_rank), control.channel);
  } catch (const std::exception& error) {
    log::error("channel {}: a control message of rank {} has no end here: {}", control.channel, control.sender_rank,
               error.what());
  }
}

// What a program says when it ends
// ----------------------------------------------------------------------------------------------------------------

unsigned ChannelTable::part_from(Peer& peer) noexcept {
  unsigned words = 0;
  for_each_end_with(peer, [&](ChannelEndpoint& end) noexcept {
    const std::uint64_t sent = end.sends().next_number();
    if (sent == 0) return;
    controls_.send(end.shared(), {ChannelControl::Kind::last, static_cast<std::uint16_t>(end.side()), end.id().value,
                                  peer.rank_there, 0, 0, sent});
    ++words;
  });
  return words;
}

void ChannelTable::on_last_word(const ChannelControl& control) noexcept {
  Peer& peer = *engine_.peers().find(control.sender_rank);
  try {
    ChannelPeer& known = with(peer);
    known.sent_there[side_key(ChannelId{control.channel}, control.sender_side)] = control.number;
    ++known.words;
    peer_ended(peer);  // the farewell may have come before
  } catch (const std::bad_alloc&) {
    log::error("channel {}: no memory for the last word of rank {}: receives from it end only with its process",
               control.channel, control.sender_rank);
  }
}

void ChannelTable::peer_ended(Peer& peer) noexcept {
  for_each_end_with(peer, [](ChannelEndpoint& end) noexcept { end.closing().end_if_known(); });
}

/// The end that a control message is for. Null if it is not there and has nothing to do.
ChannelEndpoint* ChannelTable::end_of_control(const ChannelControl& control) {
  const ChannelId id{control.channel};
  const unsigned side = 1 - (control.sender_side);
  const auto found = endpoints_.find(end_key(id, side, control.sender_rank));
  if (found != endpoints_.end()) return found->second.get();
  Peer& peer = *engine_.peers().find(control.sender_rank);
  const ChannelPeer& known = with(peer);
  const auto rest = known.closed.find(side_key(id, side));
  const std::uint64_t received = rest != known.closed.end() ? rest->second.next_receive : 0;
  const bool unread = control.kind == ChannelControl::Kind::closed && received < control.number;
  if (!unread && control.kind != ChannelControl::Kind::abandoned) return nullptr;
  return &make_end(engine_.peers().connect(Rank{control.sender_rank}), id, side, engine_.options().path);
}

ChannelEndpoint& ChannelTable::end_for(const LinkMessage& message, int rank) {
  const ChannelId id{message.channel};
  const unsigned side = 1 - (message.from_side & 1u);
  const std::uint64_t wanted = end_key(id, side, rank);
  if (last_end_ != nullptr && last_key_ == wanted) return *last_end_;
  const auto found = endpoints_.find(wanted);
  const bool is_there = found != endpoints_.end();
  ChannelEndpoint& end =
      is_there ? *found->second : make_end(engine_.peers().linked(rank), id, side, engine_.options().path);
  last_key_ = wanted;
  last_end_ = &end;
  return end;
}

void ChannelTable::on_record(void* self, const port::LinkRecord& record) noexcept {
  auto& table = *static_cast<ChannelTable*>(self);
  if (is_channel_control(record.header)) return table.on_control_record(record);
  LinkMessage message;
  if (!read_link_record(record.header, record.payload.size(), message)) [[unlikely]] {
    return table.engine_.peers().distrust(record.rank, "a record of channels that contradicts itself");
  }
  try {
    if (message.is_of_no_channel()) {
      table.pump(table.engine_.peers().linked(record.rank)).on_record(message);
      return;
    }
    if (message.from_side != table.side_of(record.rank)) [[unlikely]]
      return table.engine_.peers().distrust(record.rank, "a record of the wrong end of a channel");
    ChannelEndpoint& endpoint = table.end_for(message, record.rank);
    endpoint.on_link(message, record.payload);
    endpoint.closing().look();
  } catch (const std::bad_alloc&) {
    table.no_end_for(table.engine_.peers()[record.rank], message.channel);
  }
}

/// The last words of a program go with its farewell, over the network.
void ChannelTable::on_control_record(const port::LinkRecord& record) noexcept {
  ChannelControl control;
  const bool whole = read_channel_control({record.header, sizeof(control)}, control) && record.payload.empty() &&
                     control.kind != ChannelControl::Kind::last;
  control.sender_rank = record.rank;
  if (!whole || control.sender_side != side_of(record.rank)) [[unlikely]]
    return engine_.peers().distrust(record.rank, "a control message that contradicts itself, or is of the wrong end");
  take_control(control);
}

/// What it sent is lost, and the other end would wait for it for ever.
void ChannelTable::no_end_for(Peer& peer, std::uint32_t channel) noexcept {
  log::error("channel {}: no memory for the end that a message from rank {} is for; the peer is given up", channel,
             peer.rank.value);
  if (!peer.same_process) engine_.peers().suspect(peer);
}

void ChannelTable::check_opened(const ChannelControl& control) noexcept {
  const ChannelId id{control.channel};
  const auto other = endpoints_.find(end_key(id, 1 - (control.sender_side), control.sender_rank));
  if (other != endpoints_.end()) other->second->closing().on_opened();
  try {
    announced_.add(control);
  } catch (...) {
    return;  // only a diagnosis is lost
  }
  for (const unsigned side : {0u, 1u}) {
    ChannelEndpoint* mine = open_end(id, side, control.sender_rank);
    if (mine == nullptr) continue;
    const bool fits =
        mine->peer().rank.value == control.sender_rank && (side != (control.sender_side) || mine->peer().same_process);
    if (fits) {
      refuse_unlike(*mine, {control.sender_rank, control.linked != 0});
      continue;
    }
    log::error(
        "channel {}: rank {} opened it with rank {}, but rank {} opens it too: a channel has two ends, use another id",
        id.value, engine_.job().rank, mine->peer().rank.value, control.sender_rank);
    mine->refuse(Status::invalid_argument);
  }
}

}  // namespace brant
