#include "ops/am/messenger.h"

#include <cstring>

#include "base/log.h"
#include "core/am_ids.h"
#include "core/link_services.h"
#include "core/paths/path_choice.h"

namespace brant::am {
namespace {

constexpr const char* kDamaged = "a message with a damaged header";

/// Of a sender's messages that may overtake those before them: the window's, and many more that wait for no credit.
constexpr std::int32_t kAheadMax = 1 << 20;

/// What a window holds of the smallest that are lent.
constexpr std::size_t kLentMax = Messenger::kWindowUnits / (kShmSmallBytes / Messenger::kUnitBytes);

}  // namespace

std::uint32_t Messenger::units_of(std::size_t payload_bytes) noexcept {
  const std::size_t bytes = payload_bytes + sizeof(Message);
  return static_cast<std::uint32_t>((bytes + kUnitBytes - 1) / kUnitBytes);
}

Messenger::Messenger(Engine& engine)
    : engine_(engine), loans_(engine, pool_, kLentMax), links_(static_cast<std::size_t>(engine.job().size)) {
  engine.held_messages().claim(am_id::kMessage, &Messenger::on_message, this);
  engine.held_messages().claim(am_id::kMessageCredit, &Messenger::on_credit, this);
  engine.links().claim(link_service::kMessage, &Messenger::on_record, this);
  engine.links().claim(link_service::kMessageLoan, &Messenger::on_loan, this);
  if (engine.links().possible() && engine.job().size > 1) loans_.open_region();
}

Messenger::~Messenger() {
  engine_.pollers().detach(*this);
  links_.for_each([this](Link& link) {
    link.peer->remove_outstanding(link);
    while (Message* message = link.arrivals.pop_front()) pool_.give(*message);
  });
  for (Claim& claim : claims_) {
    while (Message* message = claim.early.pop_front()) pool_.give(*message);
  }
}

/// What a service has not released yet is its own, and its room is nobody's.
bool Messenger::forget(Peer& peer) noexcept {
  Link* link = links_.find(peer.rank.value);
  if (link == nullptr) return true;
  if (link->credit.busy) return false;
  for (Message* message = link->arrivals.front(); message != nullptr; message = link->arrivals.front()) {
    if (!message->landed) return false;
    link->arrivals.pop_front();
    pool_.give(*message);
  }
  links_.forget(peer.rank.value);
  return true;
}

void Messenger::claim(ServiceId service, Handler handler, TroubleHandler trouble, void* context,
                      InPlace in_place) noexcept {
  Claim& claim = claims_[static_cast<std::size_t>(service)];
  claim.handler = handler;
  claim.in_place = in_place;
  claim.trouble = trouble;
  claim.context = context;
  claim.made = true;
  while (Message* message = claim.early.pop_front()) hand_over(*message);
}

Messenger::Link* Messenger::make_link(Rank rank, Status& why) noexcept {
  if (!links_.takes(rank.value)) {
    why = Status::invalid_argument;
    return nullptr;
  }
  try {
    auto link = std::make_unique<Link>();
    link->messenger = this;
    link->peer = &engine_.peers().connect(rank);
    link->lost = &Messenger::on_lost;
    std::unique_ptr<Link>& place = links_.place(rank.value);
    link->peer->add_outstanding(*link);
    place = std::move(link);
    why = Status::ok;
  } catch (const Error& error) {
    // A loss is told to whoever sends, who knows what it means; every message would log it again.
    error.status() == Status::peer_lost ? log::info("{}", error.what()) : log::error("{}", error.what());
    why = error.status();
  } catch (const std::bad_alloc&) {
    why = Status::no_memory;
  }
  return links_.find(rank.value);
}

Status Messenger::send(Rank to, ServiceId service, Message& message, Flow flow) noexcept {
  message.wire.service = service;
  message.peer = to.value;
  if (to.value == engine_.job().rank) {  // the short cut: the block itself changes hands
    message.wire.source = to.value;
    message.units = 0;
    if (engine_.trace() != nullptr) {
      message.wire.sequence = traced_locally_++;
      trace(Path::automatic, to.value, message.wire.sequence, message.bytes, Clock::now());
    }
    hand_over(message);
    return Status::ok;
  }
  Status why = Status::ok;
  Link* link = link_to(to, why);
  if (why != Status::ok) return why;
  if (!has_room(*link, flow)) return Status::limit_reached;
  message.wire.source = link->peer->rank_there;
  message.wire.sequence = link->next_sequence;
  message.wire.consumed = link->consumed;
  // Entered before the post: the wire of a single process may answer inside it.
  const std::uint32_t units = units_of(message.bytes);
  link->sent_units += units;
  ++link->next_sequence;
  const Status status = carry(*link, message, flow);
  if (status == Status::ok) {
    link->reported = link->consumed;
    ++counts_.sent;
    return status;
  }
  link->sent_units -= units;
  --link->next_sequence;
  if (status == Status::limit_reached) ++counts_.refused;
  return status;
}

bool Messenger::has_room(const Link& link, Flow flow) noexcept {
  if (flow == Flow::urgent || link.sent_units - link.acknowledged < kWindowUnits) return true;
  ++counts_.refused;
  return false;
}

/// A ring answers nothing inside its post, so all is entered behind that.
Status Messenger::send_at_once(Rank to, ServiceId service, std::span<const std::byte> header,
                               std::span<const std::byte> payload) noexcept {
  if (to.value == engine_.job().rank || payload.size() > kShmSmallBytes) return Status::not_supported;
  Status why = Status::ok;
  Link* link = link_to(to, why);
  if (why != Status::ok) return why;
  port::Link* shared = link->peer->link;
  if (shared == nullptr) return Status::not_supported;
  if (!has_room(*link, Flow::credit)) return Status::limit_reached;
  WireHeader wire{.sequence = link->next_sequence,
                  .consumed = link->consumed,
                  .source = link->peer->rank_there,
                  .service = service,
                  .header_bytes = static_cast<std::uint8_t>(header.size())};
  std::memcpy(wire.user, header.data(), header.size());
  const TimePoint left = now_if_traced();
  if (!shared->post(link_service::kMessage, {reinterpret_cast<const std::byte*>(&wire), sizeof wire}, payload)) {
    ++counts_.refused;
    return Status::limit_reached;
  }
  link->sent_units += units_of(payload.size());
  link->reported = link->consumed;
  ++link->next_sequence;
  ++counts_.sent;
  engine_.counters().count_outcome(Status::ok);
  count(Path::shm, to.value, wire.sequence, payload.size(), left);
  return Status::ok;
}

/// The one place that picks who carries a message to another process. ok: the carrier has it (and gives it back to the
/// pool when the source is free). The two carriers may overtake each other: the receiver sorts.
Status Messenger::carry(Link& link, Message& message, Flow flow) noexcept {
  message.on_complete = &Messenger::on_sent;
  message.scratch[1] = reinterpret_cast<std::uintptr_t>(this);
  port::Link* shared = link.peer->link;
  // Before the post: the receiver may handle the message while this process is still in it.
  const TimePoint left = now_if_traced();
  const auto note = [&](Path path) { count(path, message.peer, message.wire.sequence, message.bytes, left); };
  if (shared != nullptr && message.bytes <= kShmSmallBytes) {
    if (shared->post(link_service::kMessage, message.wire_header(), message.payload())) {
      message.status = Status::ok;
      note(Path::shm);
      on_sent(message);
      return Status::ok;
    }
    // A full ring is back-pressure like a full window; what must not wait takes the wire.
    if (flow == Flow::credit) return Status::limit_reached;
  }
  if (shared != nullptr && message.bytes > kShmSmallBytes && loans_.lend(link, message)) {
    note(Path::shm);
    return Status::ok;
  }
  const ConstBuffer payload(message.data, message.bytes, MemoryKind::host);
  const Status status =
      engine_.wire().am_send(link.peer->endpoint, am_id::kMessage, message.wire_header(), payload, message);
  if (status == Status::ok || status == Status::in_progress) note(Path::ucx);
  if (status == Status::ok) on_sent(message);
  if (status == Status::in_progress) return Status::ok;
  engine_.counters().count_outcome(status);
  return status;
}

TimePoint Messenger::now_if_traced() const noexcept { return engine_.trace() != nullptr ? Clock::now() : TimePoint{}; }

void Messenger::count(Path path, std::int32_t peer, std::uint32_t sequence, std::size_t bytes,
                      TimePoint left) noexcept {
  PathTally& tally = engine_.counters().path(path);
  tally.sends.add();
  tally.bytes_sent.add(bytes);
  if (engine_.trace() != nullptr) trace(path, peer, sequence, bytes, left);
}

void Messenger::trace(Path path, std::int32_t peer, std::uint32_t sequence, std::size_t bytes,
                      TimePoint left) noexcept {
  Trace::Event event;
  event.kind = Trace::Kind::send;
  event.path = path;
  event.peer = peer;
  event.begin = left;
  event.end = Clock::now();
  event.name = "send";
  event.flow = Trace::flow_of(engine_.job().rank, peer, sequence);
  event.bytes = bytes;
  engine_.trace()->add(event);
}

void Messenger::on_sent(port::WireOp& op) noexcept {
  auto& message = static_cast<Message&>(op);
  auto& self = *reinterpret_cast<Messenger*>(static_cast<std::uintptr_t>(message.scratch[1]));
  self.engine_.counters().count_outcome(op.status);
  if (op.status != Status::ok && op.status != Status::canceled) {
    log::error("rank {}: a message of {} bytes to rank {} failed: {}", self.engine_.job().rank, message.bytes,
               message.peer, status_text(op.status));
    if (Link* link = self.links_.find(message.peer)) self.give_up(*link, op.status);
  }
  self.pool_.give(message);
}

void Messenger::release(Message& message) noexcept {
  const std::uint32_t units = message.units;
  const std::int32_t source = message.peer;  // the service may have said in the header who wrote it
  const std::uint64_t borrowed = message.borrowed;
  pool_.give(message);
  if (units == 0) return;
  Link* from = links_.find(source);
  if (from == nullptr) return;  // it had joined, and has left
  from->consumed += units;
  if (borrowed != Message::kOwn) loans_.hand_back(*from, borrowed);  // which tells of it, too
  report_if_due(*from);
}

void Messenger::report_if_due(Link& link) noexcept {
  if (link.consumed - link.reported >= kWindowUnits / 4) report_consumption(link);
}

void Messenger::report_consumption(Link& link) noexcept {
  if (link.trouble != Status::ok) return;
  if (!link.credit.busy) {
    const WireHeader header{
        .consumed = link.consumed, .source = link.peer->rank_there, .service = ServiceId{}, .user = {}};
    link.credit.on_complete = [](port::WireOp& op) noexcept { static_cast<Link::Credit&>(op).busy = false; };
    const auto bytes = std::span(reinterpret_cast<const std::byte*>(&header), kOwnHeaderBytes);
    const Status status = engine_.wire().am_send(link.peer->endpoint, am_id::kMessageCredit, bytes, {}, link.credit);
    link.credit.busy = status == Status::in_progress;
    if (status == Status::ok || status == Status::in_progress) {
      link.reported = link.consumed;
      link.credit.owed = false;
      ++counts_.credits;
      return;
    }
  }
  link.credit.owed = true;  // again from progress: the sender may be waiting for nothing else
  engine_.pollers().attach(*this);
}

unsigned Messenger::poll() noexcept {
  unsigned owed = 0;
  links_.for_each([&](Link& link) {
    if (!link.credit.owed) return;
    report_consumption(link);
    if (link.credit.owed && link.trouble == Status::ok) ++owed;
  });
  if (owed == 0) engine_.pollers().detach(*this);
  return 0;
}

void Messenger::on_credit(void* context, port::AmMessage& incoming) noexcept {
  auto& self = *static_cast<Messenger*>(context);
  WireHeader header;
  if (incoming.header.size() != kOwnHeaderBytes) [[unlikely]]
    return self.drop_damaged(header.source, incoming);
  std::memcpy(static_cast<void*>(&header), incoming.header.data(), kOwnHeaderBytes);
  if (Link* link = self.link_from(header.source)) static_cast<void>(self.note_credit(*link, header));
}

/// Null: no other process of the job sent it, or that one cannot be answered.
Messenger::Link* Messenger::link_from(std::int32_t source) noexcept {
  if (source == engine_.job().rank || engine_.peers().find(source) == nullptr) [[unlikely]] {
    engine_.peers().distrust(source, kDamaged);
    return nullptr;
  }
  Status why = Status::ok;
  return link_to(Rank{source}, why);
}

void Messenger::drop_damaged(std::int32_t source, port::AmMessage& incoming) noexcept {
  engine_.wire().am_discard(incoming);
  engine_.peers().distrust(source, kDamaged);
}

/// Credits may overtake each other on their way: the later one counts. False: more than was ever sent.
bool Messenger::note_credit(Link& link, const WireHeader& header) noexcept {
  const std::uint32_t more = header.consumed - link.acknowledged;
  if (static_cast<std::int32_t>(more) <= 0) return true;
  if (more > link.sent_units - link.acknowledged) [[unlikely]] {
    engine_.peers().distrust(*link.peer, "word of more messages consumed than it was sent");
    return false;
  }
  link.acknowledged = header.consumed;
  return true;
}

void Messenger::on_message(void* context, port::AmMessage& incoming) noexcept {
  auto& self = *static_cast<Messenger*>(context);
  WireHeader header;
  const std::size_t bytes = incoming.header.size();
  const bool fits = bytes >= kOwnHeaderBytes && bytes <= sizeof(header);
  if (fits) std::memcpy(static_cast<void*>(&header), incoming.header.data(), bytes);
  if (!fits || header.header_bytes != bytes - kOwnHeaderBytes) [[unlikely]]
    return self.drop_damaged(header.source, incoming);
  Link* link = self.link_from(header.source);
  link != nullptr ? self.arrive(*link, Path::ucx, header, incoming) : self.engine_.wire().am_discard(incoming);
}

/// Null: it contradicts itself, or its sender cannot be answered.
Messenger::Link* Messenger::read_header(const port::LinkRecord& record, WireHeader& header) noexcept {
  std::memcpy(static_cast<void*>(&header), record.header, sizeof(header));
  if (header.source != record.rank || header.header_bytes > kHeaderBytesMax) [[unlikely]] {
    engine_.peers().distrust(record.rank, kDamaged);
    return nullptr;
  }
  Status why = Status::ok;
  return link_to(Rank{record.rank}, why);
}

void Messenger::on_record(void* context, const port::LinkRecord& record) noexcept {
  port::AmMessage incoming{{record.header, kOwnHeaderBytes}, record.payload.data(), record.payload.size(), nullptr};
  WireHeader header;
  auto& self = *static_cast<Messenger*>(context);
  if (Link* link = self.read_header(record, header)) self.arrive(*link, Path::shm, header, incoming);
}

void Messenger::on_loan(void* context, const port::LinkRecord& record) noexcept {
  auto& self = *static_cast<Messenger*>(context);
  WireHeader header;
  Link* link = self.read_header(record, header);
  if (link == nullptr) return;
  if (header.service == ServiceId{}) {
    if (self.note_credit(*link, header)) self.loans_.on_note(*link, header, record.payload);
    return;
  }
  if (!self.may_arrive(*link, header)) return;
  Status why = Status::ok;
  Message* message = self.loans_.borrow(*link, header, record.payload, why);
  if (why != Status::ok) self.give_up(*link, why);
  if (message == nullptr) return;
  message->units = units_of(message->bytes);
  if (!self.admit(*link, Path::shm, *message)) self.pool_.give(*message);
}

void Messenger::count_arrival(Path path, std::size_t bytes) noexcept {
  PathTally& tally = engine_.counters().path(path);
  tally.receives.add();
  tally.bytes_received.add(bytes);
}

/// False: it came before, or there can be no such message.
bool Messenger::may_arrive(Link& link, const WireHeader& header) noexcept {
  if (!note_credit(link, header)) [[unlikely]]
    return false;
  const auto ahead = static_cast<std::int32_t>(header.sequence - link.expected_sequence);
  if (ahead < 0) {
    ++counts_.duplicates;
    return false;
  }
  if (ahead >= kAheadMax) [[unlikely]] {
    engine_.peers().distrust(*link.peer, "a message numbered far beyond what it may send");
    return false;
  }
  return true;
}

void Messenger::arrive(Link& link, Path path, const WireHeader& header, port::AmMessage& incoming) noexcept {
  if (!may_arrive(link, header)) return engine_.wire().am_discard(incoming);
  if (take_in_place(link, path, header, incoming)) return;
  Message* message = pool_.take(incoming.bytes);
  if (message == nullptr) {
    log::error("rank {}: no memory for a message of {} bytes from rank {}", engine_.job().rank, incoming.bytes,
               header.source);
    engine_.wire().am_discard(incoming);
    give_up(link, Status::no_memory);
    return;
  }
  message->wire = header;
  message->peer = header.source;
  message->units = units_of(incoming.bytes);
  message->landed = incoming.data != nullptr || incoming.bytes == 0;
  const bool here = message->landed;
  if (here && incoming.bytes != 0) std::memcpy(message->data, incoming.data, incoming.bytes);
  if (!admit(link, path, *message)) {
    engine_.wire().am_discard(incoming);
    pool_.give(*message);
  } else if (!here && land(link, *message, incoming)) {
    hand_over_in_order(link);
  }
}

/// What is here whole, and the next in order.
bool Messenger::take_in_place(Link& link, Path path, const WireHeader& header,
                              const port::AmMessage& incoming) noexcept {
  const auto service = static_cast<std::size_t>(header.service);
  if (service >= claims_.size() || claims_[service].in_place == nullptr) return false;
  if (header.sequence != link.expected_sequence || (incoming.data == nullptr && incoming.bytes != 0)) return false;
  const std::span payload(static_cast<const std::byte*>(incoming.data), incoming.bytes);
  if (!claims_[service].in_place(claims_[service].context, header, payload)) return false;
  ++link.expected_sequence;
  ++counts_.received;
  count_arrival(path, incoming.bytes);
  link.consumed += units_of(incoming.bytes);
  report_if_due(link);
  if (!link.arrivals.empty()) hand_over_in_order(link);
  return true;
}

bool Messenger::admit(Link& link, Path path, Message& message) noexcept {
  const auto bytes = message.bytes;
  if (message.landed && message.wire.sequence == link.expected_sequence) {
    ++link.expected_sequence;
    ++counts_.received;
    count_arrival(path, bytes);
    hand_over(message);
    if (!link.arrivals.empty()) hand_over_in_order(link);
    return true;
  }
  if (!link.arrivals.insert_by_sequence(message)) {
    ++counts_.duplicates;
    return false;
  }
  count_arrival(path, bytes);
  return true;
}

/// Fetches a large payload. True: it is here already.
bool Messenger::land(Link& link, Message& message, port::AmMessage& incoming) noexcept {
  message.on_complete = &Messenger::on_landed;
  message.scratch[0] = reinterpret_cast<std::uintptr_t>(&link);
  const Buffer landing(message.data, message.bytes, MemoryKind::host);
  const Status status = engine_.wire().am_receive(incoming, landing, message);
  if (status == Status::in_progress) return false;
  message.landed = true;
  if (status != Status::ok) give_up(link, status);
  return status == Status::ok;
}

void Messenger::on_landed(port::WireOp& op) noexcept {
  auto& message = static_cast<Message&>(op);
  auto& link = *reinterpret_cast<Link*>(static_cast<std::uintptr_t>(message.scratch[0]));
  message.landed = true;
  if (op.status != Status::ok) {
    link.messenger->give_up(link, op.status);
    return;
  }
  link.messenger->hand_over_in_order(link);
}

void Messenger::hand_over_in_order(Link& link) noexcept {
  for (;;) {
    Message* message = link.arrivals.front();
    if (message == nullptr || !message->landed || message->wire.sequence != link.expected_sequence) return;
    link.arrivals.pop_front();
    ++link.expected_sequence;
    ++counts_.received;
    hand_over(*message);
  }
}

void Messenger::hand_over(Message& message) noexcept {
  const auto service = static_cast<std::size_t>(message.wire.service);
  if (service < claims_.size() && claims_[service].handler != nullptr) {
    claims_[service].handler(claims_[service].context, message);
    return;
  }
  if (service < claims_.size() && !claims_[service].made) return claims_[service].early.push_back(message);
  log::warn("rank {}: a message of {} bytes from rank {} for service {}, which nobody runs here: dropped",
            engine_.job().rank, message.bytes, message.wire.source, service);
  release(message);
}

void Messenger::on_lost(PeerOp& op) noexcept {
  auto& link = static_cast<Link&>(op);
  link.messenger->loans_.take_all_back(link);
  link.messenger->give_up(link, Status::peer_lost);
}

void Messenger::give_up(Link& link, Status status) noexcept {
  if (link.trouble != Status::ok) return;
  link.trouble = status;
  for (const Claim& claim : claims_) {
    if (claim.trouble != nullptr) claim.trouble(claim.context, link.peer->rank, status);
  }
}

}  // namespace brant::am
