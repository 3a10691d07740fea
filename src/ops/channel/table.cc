#include "ops/channel/table.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "core/am_ids.h"
#include "core/link_services.h"
#include "ops/channel/link_record.h"
#include "ops/channel/reserved_ids.h"

namespace brant {

ChannelTable::ChannelTable(Engine& engine)
    : engine_(engine),
      own_rank_(engine.job().rank),
      mappings_(MappingTable::of(engine)),
      mover_(engine.service<Mover>()),
      stages_(mover_.stages()) {
  engine.claim_am(am_id::kChannelControl, &ChannelTable::on_control, this);
  engine.claim_am(am_id::kChannelStall, &ChannelTable::on_account, this);
  engine.claim_link(link_service::kChannel, &ChannelTable::on_record, this);
  engine.look_at_links(link_service::kChannel);  // what was said of ends before this one is opened
}

void ChannelTable::tell_transfers_limit() noexcept {
  if (std::exchange(transfers_limit_told_, true)) return;
  log::warn(
      "{} sends and receives are under way in this process, and no more can be (or there is no memory for them): "
      "a post returns limit_reached until some have ended. Call progress, and post receives before their messages",
      live());
}

LinkPump& ChannelTable::pump(Peer& peer) {
  auto known = pumps_.find(peer.rank.value);
  if (known == pumps_.end())
    known = pumps_.emplace(peer.rank.value, std::make_unique<LinkPump>(engine_, peer, *mappings_)).first;
  mover_.open();
  return *known->second;
}

Result<const StreamKernels*> ChannelTable::stream_kernels() noexcept {
  if (!stream_kernels_) {
    StreamKernels kernels;
    if (const Status status = kernels.load(engine_.device()); status != Status::ok) return status;
    stream_kernels_ = kernels;
  }
  return &*stream_kernels_;
}

ChannelEndpoint& ChannelTable::open(Rank peer_rank, ChannelId id, Path forced, std::optional<unsigned> own_side) {
  if (id.value > reserved_id::kLast) {
    throw Error(Status::invalid_argument,
                fmt::format("channel id {} does not fit in 28 bits: use 0 to {}", id.value, kChannelIdMax));
  }
  Peer& peer = engine_.peer(peer_rank);
  const int self = engine_.job().rank;
  unsigned side = self < peer_rank.value ? 0u : 1u;
  if (peer.same_process) {
    side = own_side.value_or(open_end(id, 0) == nullptr ? 0u : 1u);
  }
  ChannelEndpoint* holder = open_end(id, side);
  if (holder == nullptr && !peer.same_process) holder = open_end(id, 1 - side);
  if (holder != nullptr) {
    throw Error(Status::invalid_argument,
                fmt::format("channel {} is open already (rank {} with rank {}): close it first, or use another id",
                            id.value, self, holder->peer().rank.value));
  }
  if (forced == Path::automatic) forced = engine_.options().path;
  const auto known = endpoints_.find(end_key(id, side, peer_rank.value));
  ChannelEndpoint* endpoint = known != endpoints_.end() ? known->second.get() : &make_end(peer, id, side, forced);
  open_ends_[key(id, side)] = endpoint;
  endpoint->reopen(forced);
  const auto announced = announced_.find(key(id, 1 - side));
  if (announced != announced_.end() && announced->second.rank != peer_rank.value) {
    const int who = announced->second.rank;
    endpoint->closing().close();
    throw Error(Status::invalid_argument,
                fmt::format("channel {}: rank {} opens it with rank {}, but its other end is at rank {}", id.value,
                            self, peer_rank.value, who));
  }
  send_control(peer, {ChannelControl::Kind::opened, id.value, side, self, endpoint->linked() ? 1u : 0u, 0, 0});
  if (announced != announced_.end()) {
    endpoint->closing().on_opened();
    refuse_unlike(*endpoint, announced->second);
  }
  end_if_known(*endpoint);
  return *endpoint;
}

/// Of this process, whoever has the other.
ChannelEndpoint* ChannelTable::open_end(ChannelId id, unsigned side) const noexcept {
  const auto found = open_ends_.find(key(id, side));
  return found == open_ends_.end() ? nullptr : found->second;
}

/// Not open yet.
ChannelEndpoint& ChannelTable::make_end(Peer& peer, ChannelId id, unsigned side, Path forced) {
  auto end = std::make_unique<ChannelEndpoint>(*this, peer, id, side, forced);
  std::unique_ptr<ChannelEndpoint>& place = endpoints_[end_key(id, side, peer.rank.value)];  // the last that may throw
  if (const ClosedEnd* before = remembered(id, side, peer.rank.value)) {
    end->closing().resume(*before);
    closed_ends_.at(peer.rank.value).by_key.erase(key(id, side));
  }
  place = std::move(end);
  place->closing().await_open();
  return *place;
}

/// What is left of an end whose peer lives. Throws bad_alloc.
void ChannelTable::remember(ChannelEndpoint& endpoint) {
  const ClosedEnd rest = endpoint.closing().rest();
  Peer& peer = endpoint.peer();
  if (peer.lost || rest.opened == 0) return;
  const auto [ends, is_first] = closed_ends_.try_emplace(peer.rank.value);
  if (is_first) {
    ends->second.lost = [](PeerOp& self) noexcept { static_cast<ClosedEnds&>(self).by_key.clear(); };
    engine_.add_outstanding(peer, ends->second);
  }
  ends->second.by_key.insert_or_assign(key(endpoint.id(), endpoint.side()), rest);
}

const ClosedEnd* ChannelTable::remembered(ChannelId id, unsigned side, std::int32_t rank) const noexcept {
  const auto ends = closed_ends_.find(rank);
  if (ends == closed_ends_.end()) return nullptr;
  const auto end = ends->second.by_key.find(key(id, side));
  return end == ends->second.by_key.end() ? nullptr : &end->second;
}

std::size_t ChannelTable::ends_remembered() const noexcept {
  std::size_t count = 0;
  for (const auto& [rank, ends] : closed_ends_) count += ends.by_key.size();
  return count;
}

void ChannelTable::forget_later(ChannelEndpoint& endpoint) noexcept {
  if (SettledEnds::linked(endpoint)) return;
  settled_.push_back(endpoint);
  engine_.attach(static_cast<Poller&>(*this));
}

unsigned ChannelTable::forget_settled() noexcept {
  unsigned forgotten = 0;
  bool of_the_lost = false;
  while (ChannelEndpoint* end = settled_.pop_front()) {
    if (!end->closing().settled()) continue;  // opened again, or something came
    try {
      remember(*end);
    } catch (const std::bad_alloc&) {
      continue;  // it stays as it is
    }
    of_the_lost = of_the_lost || end->peer().lost;
    last_end_ = nullptr;
    endpoints_.erase(end_key(end->id(), end->side(), end->peer().rank.value));
    ++forgotten;
  }
  if (of_the_lost) engine_.defer(static_cast<DeferredWork&>(*this));
  return forgotten;
}

void ChannelTable::run_deferred() noexcept {
  const auto in_use = [this](const Peer& peer) {
    const auto with_peer = [&](const auto& end) { return &end.second->peer() == &peer; };
    return !peer.lost || std::any_of(endpoints_.begin(), endpoints_.end(), with_peer);
  };
  if (!retired_lanes_.empty()) return;  // they may work with any of them
  std::erase_if(pumps_, [&](const auto& pump) { return !in_use(pump.second->peer()); });
}

/// All of one channel go the same way, since an acknowledgement says of all messages before it that nothing went wrong.
void ChannelTable::send_control(Peer& peer, const ChannelControl& control) noexcept {
  if (peer.lost) return;
  if (peer.link != nullptr && control.kind != ChannelControl::Kind::last) {
    const LinkMessage message = packed(control);
    if (peer.link->post_control(link_service::kChannel, std::as_bytes(std::span(&message, 1)))) return;
    log::error("channel {} to rank {}: no memory for a control record; the peer is given up", control.channel,
               peer.rank.value);
    return engine_.suspect(peer);
  }
  ControlSend* send = control_sends_.take();
  if (send == nullptr) {
    log::error("channel {}: no memory for a control message to rank {}: its end there may wait for it for ever",
               control.channel, peer.rank.value);
    return;
  }
  send->table = this;
  send->peer = &peer;
  send->control = control;
  send->on_complete = [](port::WireOp& op) noexcept {
    auto& done = static_cast<ControlSend&>(op);
    done.table->control_sends_.give_back(&done);
  };
  // A lost acknowledgement would hold the other end back for ever: what found no room is sent later.
  const bool others_wait = refused_controls_.contains(peer.rank.value);
  const Status status = others_wait ? Status::limit_reached : post(*send);
  if (status == Status::limit_reached) return send_later(*send);
  if (status != Status::in_progress) control_sends_.give_back(send);
}

/// Behind those of the same peer: an acknowledgement says of all messages before it that nothing went wrong.
void ChannelTable::send_later(ControlSend& send) noexcept {
  try {
    refused_controls_[send.peer->rank.value].push_back(send);
  } catch (const std::bad_alloc&) {
    log::error("channel {}: no memory to keep a control message to rank {}", send.control.channel,
               send.peer->rank.value);
    return control_sends_.give_back(&send);
  }
  engine_.attach(static_cast<Poller&>(*this));
}

/// limit_reached: the network has no room for it. in_progress: it has it. Else that was all.
Status ChannelTable::post(ControlSend& send) noexcept {
  const auto bytes = std::as_bytes(std::span(&send.control, 1));
  const Status status = send.peer->lost
                            ? Status::peer_lost
                            : engine_.wire().am_send(send.peer->endpoint, am_id::kChannelControl, bytes, {}, send);
  const bool ended = status != Status::in_progress && status != Status::limit_reached;
  if (ended && status != Status::ok && status != Status::peer_lost) {
    log::error("channel {}: a control message to rank {} failed: {}", send.control.channel, send.peer->rank.value,
               status_text(status));
  }
  return status;
}

unsigned ChannelTable::poll() noexcept {
  const unsigned events = forget_settled() + send_refused();
  if (refused_controls_.empty()) engine_.detach(static_cast<Poller&>(*this));
  return events;
}

/// One peer's want of room does not stop the others.
unsigned ChannelTable::send_refused() noexcept {
  unsigned events = 0;
  for (auto waiting = refused_controls_.begin(); waiting != refused_controls_.end();) {
    ControlSends& sends = waiting->second;
    while (ControlSend* first = sends.front()) {
      const Status status = post(*first);
      if (status == Status::limit_reached) break;
      sends.remove(*first);
      if (status != Status::in_progress) control_sends_.give_back(first);
      ++events;
    }
    waiting = sends.empty() ? refused_controls_.erase(waiting) : std::next(waiting);
  }
  return events;
}

void ChannelTable::on_control(void* self, port::AmMessage& message) noexcept {
  auto& table = *static_cast<ChannelTable*>(self);
  ChannelControl control;
  if (!read_channel_control(message.header, control)) [[unlikely]] {
    table.engine_.wire().am_discard(message);
    return table.engine_.distrust(control.sender_rank, "a control message of channels that contradicts itself");
  }
  const Peer* sender = table.engine_.find_peer(control.sender_rank);
  if (sender == nullptr || (!sender->same_process && control.sender_side != table.side_of(control.sender_rank)))
      [[unlikely]] {
    return table.engine_.distrust(control.sender_rank, "a control message of the wrong end of a channel");
  }
  if (!sender->lost) table.take_control(control);  // else nothing waits for it any more
}

void ChannelTable::take_control(const ChannelControl& control) noexcept {
  source_patience_.heard_from(control.sender_rank);
  if (control.kind == ChannelControl::Kind::opened) return check_opened(control);
  if (control.kind == ChannelControl::Kind::last) return on_last_word(control);
  // From now on that end may lie elsewhere.
  if (control.kind == ChannelControl::Kind::closed) forget_announced(control);
  try {
    if (ChannelEndpoint* end = end_of_control(control)) end->on_control(control);
  } catch (const std::exception& error) {
    log::error("channel {}: a control message of rank {} has no end here: {}", control.channel, control.sender_rank,
               error.what());
  }
}

/// The end that a control message is for. Null if it is not there and has nothing to do.
ChannelEndpoint* ChannelTable::end_of_control(const ChannelControl& control) {
  const ChannelId id{control.channel};
  const unsigned side = 1 - (control.sender_side & 1u);
  const auto found = endpoints_.find(end_key(id, side, control.sender_rank));
  if (found != endpoints_.end()) return found->second.get();
  const ClosedEnd* rest = remembered(id, side, control.sender_rank);
  const std::uint64_t received = rest != nullptr ? rest->next_receive : 0;
  const bool unread = control.kind == ChannelControl::Kind::closed && received < control.number;
  if (!unread && control.kind != ChannelControl::Kind::abandoned) return nullptr;
  return &make_end(engine_.peer(Rank{control.sender_rank}), id, side, engine_.options().path);
}

/// Unless another rank has announced its end since.
void ChannelTable::forget_announced(const ChannelControl& control) noexcept {
  const auto announced = announced_.find(key(ChannelId{control.channel}, control.sender_side & 1u));
  if (announced != announced_.end() && announced->second.rank == control.sender_rank) announced_.erase(announced);
}

ChannelEndpoint& ChannelTable::end_for(const LinkMessage& message, int rank) {
  const ChannelId id{message.channel};
  const unsigned side = 1 - (message.from_side & 1u);
  const std::uint64_t wanted = end_key(id, side, rank);
  if (last_end_ != nullptr && last_key_ == wanted) return *last_end_;
  const auto found = endpoints_.find(wanted);
  const bool is_there = found != endpoints_.end();
  ChannelEndpoint& end =
      is_there ? *found->second : make_end(engine_.linked_peer(rank), id, side, engine_.options().path);
  last_key_ = wanted;
  last_end_ = &end;
  return end;
}

void ChannelTable::on_record(void* self, const port::LinkRecord& record) noexcept {
  auto& table = *static_cast<ChannelTable*>(self);
  LinkMessage message;
  if (!read_link_record(record.header, record.payload.size(), message)) [[unlikely]] {
    return table.engine_.distrust(record.rank, "a record of channels that contradicts itself");
  }
  try {
    if (message.is_of_no_channel()) {
      table.pump(table.engine_.linked_peer(record.rank)).on_record(message);
      return;
    }
    if (message.from_side != table.side_of(record.rank)) [[unlikely]]
      return table.engine_.distrust(record.rank, "a record of the wrong end of a channel");
    if (message.kind == LinkMessage::Kind::control) return table.take_control(unpacked(message, record.rank));
    ChannelEndpoint& endpoint = table.end_for(message, record.rank);
    endpoint.on_link(message, record.payload);
    endpoint.closing().look();
  } catch (const std::bad_alloc&) {
    log::error("channel {}: no memory for the end that a message from rank {} is for: dropped", message.channel,
               record.rank);
  }
}

/// Both ends see this, and both refuse: one of them waits for tags, the other for records.
void ChannelTable::refuse_unlike(ChannelEndpoint& endpoint, const Announced& other) noexcept {
  if (endpoint.linked() == other.linked) return;
  log::error(
      "channel {} between ranks {} and {}: one end is forced to path ucx, the other is not. Force the path of both "
      "ends, or of neither (BRANT_PATH for all)",
      endpoint.id().value, engine_.job().rank, other.rank);
  endpoint.refuse(Status::invalid_argument);
}

void ChannelTable::check_opened(const ChannelControl& control) noexcept {
  const ChannelId id{control.channel};
  const auto other = endpoints_.find(end_key(id, 1 - (control.sender_side & 1u), control.sender_rank));
  if (other != endpoints_.end()) other->second->closing().on_opened();
  try {
    announced_[key(id, control.sender_side & 1u)] = {control.sender_rank, control.linked != 0};
  } catch (...) {
    return;  // only a diagnosis is lost
  }
  for (const unsigned side : {0u, 1u}) {
    ChannelEndpoint* mine = open_end(id, side);
    if (mine == nullptr) continue;
    const bool fits = mine->peer().rank.value == control.sender_rank &&
                      (side != (control.sender_side & 1u) || mine->peer().same_process);
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
