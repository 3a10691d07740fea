#include "port/wire/loopback/loopback_wire.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "port/wire/loopback/loopback_memory.h"

// The data half: posting, matching, delivering. Opening, connecting and dying are in loopback_control.cc.
namespace brant::port::loopback {
namespace {

constexpr unsigned kAcceptMost = 64;

constexpr std::byte kNothing{};

}  // namespace

Endpoint* LoopbackWire::checked(WireEndpoint* endpoint) const noexcept {
  auto* mine = reinterpret_cast<Endpoint*>(endpoint);
  return mine != nullptr && mine->wire == this && !mine->closed ? mine : nullptr;
}

LoopbackWire* LoopbackWire::peer_of(const Endpoint& endpoint) const noexcept {
  LoopbackWire* peer = fabric_.wire(endpoint.peer);
  return peer != nullptr && !peer->dead() ? peer : nullptr;
}

// --- sending ---------------------------------------------------------------------------------------------------------

Message* LoopbackWire::make_message(Endpoint& endpoint, MessageKind type, std::uint64_t tag,
                                    std::span<const std::byte> header, ConstBuffer payload, bool eager,
                                    Status& why) noexcept {
  why = Status::limit_reached;
  if (!eager && !operations_.take_slot()) return nullptr;
  const std::size_t payload_at = (header.size() + 15) / 16 * 16;
  Message* message = fabric_.take_message();
  if (message == nullptr || !fabric_.give_storage(*message, payload_at + (eager ? payload.bytes : 0))) {
    if (message != nullptr) fabric_.give(*message);
    if (!eager) operations_.give_slot();
    why = Status::no_memory;
    return nullptr;
  }
  message->type = type;
  message->tag = tag;
  message->eager = eager;
  message->from = this;
  message->to = peer_of(endpoint);
  message->header_bytes = header.size();
  std::copy(header.begin(), header.end(), message->storage);
  message->source = payload;
  if (!eager) {
    message->endpoint = &endpoint;
    return message;
  }
  const Buffer copy{message->storage + payload_at, payload.bytes, MemoryKind::host};
  if (!fabric_.copy(copy, payload)) {
    fabric_.give(*message);
    why = Status::device_failed;
    return nullptr;
  }
  message->source = copy;
  return message;
}

/// Sends the message on its way; the op of an eager one is done with that.
Status LoopbackWire::dispatch(Message& message, WireOp& op) noexcept {
  const bool eager = message.eager;
  op.bytes = message.source.bytes;
  op.status = eager ? Status::ok : Status::in_progress;
  if (!eager) {
    message.op = &op;
    op.request = static_cast<Record*>(&message);
    message.endpoint->pending.push_back(message);
  }
  if (message.to == nullptr) {
    if (eager) fabric_.give(message);  // lost on the way to the dead, as in a real network
    return op.status;
  }
  LoopbackWire& peer = *message.to;
  if (eager) peer.arrivals_.note_eager();
  if (fabric_.immediate()) {
    peer.accept(message);
  } else {
    message.due = peer.tick_ + fabric_.random_delay();
    peer.arrivals_.put(message, Place::arriving);
  }
  peer.alarm_.ring();
  return op.status;
}

/// The receive is posted already: one copy, no record.
Status LoopbackWire::send_to_match(LoopbackWire& peer, Receive& receive, std::uint64_t tag, ConstBuffer source,
                                   WireOp& op) noexcept {
  WireOp& landed = *receive.op;
  const Buffer landing = receive.landing;
  peer.operations_.give_slot();
  peer.receives_.give(receive);
  const bool fits = source.bytes <= landing.bytes;
  const bool copied = fabric_.copy(landing, {source.data, std::min(source.bytes, landing.bytes), source.kind});
  landed.bytes = source.bytes;
  landed.tag = tag;
  peer.operations_.complete(landed, !copied ? Status::device_failed : fits ? Status::ok : Status::truncated);
  op.bytes = source.bytes;
  op.status = Status::ok;
  if (fits || source.bytes <= fabric_.options().eager_bytes_max || !capabilities_.reports_truncation_to_sender)
    return Status::ok;
  operations_.complete(op, Status::truncated);
  return Status::in_progress;
}

Status LoopbackWire::tag_send(WireEndpoint* endpoint, std::uint64_t tag, ConstBuffer source, WireOp& op) noexcept {
  Status why = operations_.check(source.data, source.bytes, source.kind, op);
  if (why != Status::ok) return why;
  Endpoint* to = checked(endpoint);
  if (to == nullptr) return Status::invalid_argument;
  op.tag = tag;
  LoopbackWire* peer = peer_of(*to);
  if (peer != nullptr && fabric_.immediate()) {
    if (Receive* receive = peer->receives_.take_match(tag)) return send_to_match(*peer, *receive, tag, source, op);
  }
  const bool room = peer == nullptr || !peer->arrivals_.crowded();
  const bool eager = room && source.bytes <= fabric_.options().eager_bytes_max;
  Message* message = make_message(*to, MessageKind::tagged, tag, {}, source, eager, why);
  return message != nullptr ? dispatch(*message, op) : why;
}

Status LoopbackWire::am_send(WireEndpoint* endpoint, unsigned id, std::span<const std::byte> header,
                             ConstBuffer payload, WireOp& op) noexcept {
  Status why = operations_.check(payload.data, payload.bytes, payload.kind, op);
  if (why != Status::ok) return why;
  Endpoint* to = checked(endpoint);
  if (to == nullptr || id >= am_slots_.size() || header.size() > capabilities_.am_header_bytes_max ||
      (header.data() == nullptr && !header.empty())) {
    return Status::invalid_argument;
  }
  const LoopbackWire* peer = peer_of(*to);
  if (peer != nullptr && peer->arrivals_.crowded()) return Status::limit_reached;
  const bool eager = payload.bytes <= capabilities_.am_eager_bytes_max;
  Message* message = make_message(*to, MessageKind::active, id, header, payload, eager, why);
  return message != nullptr ? dispatch(*message, op) : why;
}

// --- receiving -------------------------------------------------------------------------------------------------------

void LoopbackWire::end_at_sender(Message& message, Status status) noexcept {
  WireOp* op = std::exchange(message.op, nullptr);
  if (op == nullptr) return;
  message.endpoint->forget(message);
  message.from->operations_.give_slot();
  const bool tells = status != Status::truncated || message.from->capabilities_.reports_truncation_to_sender;
  message.from->operations_.complete(*op, tells ? status : Status::ok);
}

void LoopbackWire::land(Message& message, Buffer landing, WireOp& op) noexcept {
  const std::size_t bytes = message.source.bytes;
  const bool copied = fabric_.copy(landing, {message.source.data, std::min(bytes, landing.bytes), message.source.kind});
  const Status status = !copied ? Status::device_failed : bytes <= landing.bytes ? Status::ok : Status::truncated;
  op.bytes = bytes;
  op.tag = message.type == MessageKind::tagged ? message.tag : 0;
  end_at_sender(message, status == Status::truncated ? status : Status::ok);
  arrivals_.release(message);
  operations_.complete(op, status);
}

/// What a message does on arrival: lands in a posted receive, or waits for one, or for `deliver`.
void LoopbackWire::accept(Message& message) noexcept {
  if (message.type == MessageKind::active) {
    arrivals_.put(message, Place::inbox);
    return;
  }
  Receive* receive = receives_.take_match(message.tag);
  if (receive == nullptr) {
    arrivals_.put(message, Place::unexpected);
    return;
  }
  const Buffer landing = receive->landing;
  WireOp& op = *receive->op;
  operations_.give_slot();
  receives_.give(*receive);
  land(message, landing, op);
}

Status LoopbackWire::tag_recv(std::uint64_t tag, std::uint64_t mask, Buffer landing, WireOp& op) noexcept {
  const Status why = operations_.check(landing.data, landing.bytes, landing.kind, op);
  if (why != Status::ok) return why;
  for (Message* message = arrivals_.first(Place::unexpected); message != nullptr; message = Messages::next(*message)) {
    if (((message->tag ^ tag) & mask) != 0) continue;
    land(*message, landing, op);
    return Status::in_progress;
  }
  if (!operations_.take_slot()) return Status::limit_reached;
  Receive* receive = receives_.add(tag, mask, landing, op);
  if (receive == nullptr) {
    operations_.give_slot();
    return Status::no_memory;
  }
  op.request = static_cast<Record*>(receive);
  op.status = Status::in_progress;
  return Status::in_progress;
}

void LoopbackWire::cancel(WireOp& op) noexcept {
  auto* record = static_cast<Record*>(op.request);
  if (dead() || record == nullptr || record->kind != RecordKind::receive || record->op != &op) return;
  receives_.withdraw(static_cast<Receive&>(*record));
  operations_.give_slot();
  operations_.complete(op, Status::canceled);
}

unsigned LoopbackWire::drop_unread(std::uint64_t tag, std::uint64_t mask) noexcept {
  unsigned dropped = 0;
  Message* following = nullptr;
  for (Message* message = arrivals_.first(Place::unexpected); message != nullptr; message = following) {
    following = Messages::next(*message);
    if (((message->tag ^ tag) & mask) != 0) continue;
    end_at_sender(*message, Status::truncated);
    arrivals_.release(*message);
    ++dropped;
  }
  return dropped;
}

void LoopbackWire::set_am_handler(unsigned id, AmHandler handler, void* context) noexcept {
  if (id < am_slots_.size()) am_slots_[id] = {handler, context};
}

Status LoopbackWire::am_receive(AmMessage& message, Buffer landing, WireOp& op) noexcept {
  const Status why = operations_.check(landing.data, landing.bytes, landing.kind, op);
  if (why != Status::ok) return why;
  auto* waiting = static_cast<Message*>(message.descriptor);
  if (message.data != nullptr || waiting == nullptr || waiting->where != Place::waiting || waiting->to != this)
    return Status::invalid_argument;
  message.descriptor = nullptr;
  if (waiting->source_gone) {
    arrivals_.release(*waiting);
    op.bytes = 0;
    operations_.complete(op, Status::peer_lost);
  } else {
    land(*waiting, landing, op);
  }
  return Status::in_progress;
}

void LoopbackWire::am_discard(AmMessage& message) noexcept {
  auto* waiting = static_cast<Message*>(message.descriptor);
  if (dead() || message.data != nullptr || waiting == nullptr || waiting->where != Place::waiting ||
      waiting->to != this)
    return;
  message.descriptor = nullptr;
  end_at_sender(*waiting, Status::ok);
  arrivals_.release(*waiting);
}

// --- progress --------------------------------------------------------------------------------------------------------

unsigned LoopbackWire::accept_due() noexcept {
  unsigned accepted = 0;
  while (accepted < kAcceptMost) {
    Message* message = arrivals_.draw(tick_);
    if (message == nullptr) break;
    accept(*message);
    ++accepted;
  }
  return accepted;
}

unsigned LoopbackWire::progress() noexcept {
  if (dead()) return 0;
  ++tick_;
  unsigned events = memory_->progress();
  if (!fabric_.immediate()) events += accept_due();
  // What arrived in the post itself is news too.
  return events + (operations_.any_done() ? 1u : 0u) + (arrivals_.none(Place::inbox) ? 0u : 1u);
}

unsigned LoopbackWire::deliver(unsigned limit) noexcept {
  unsigned done = 0;
  // By turns, so that neither a stream of completions nor one of messages starves the other.
  while (done < limit && !dead()) {
    const bool told = operations_.deliver_one();
    if (told) ++done;
    Message* message = done < limit ? arrivals_.first(Place::inbox) : nullptr;
    if (message != nullptr) {
      ++done;
      hand_over(*message);
    }
    if (!told && message == nullptr) break;
  }
  return done;
}

void LoopbackWire::hand_over(Message& message) noexcept {
  arrivals_.take_out(message);
  const AmSlot slot = am_slots_[message.tag];
  AmMessage view;
  view.header = {message.storage, message.header_bytes};
  view.bytes = message.source.bytes;
  if (message.eager) {
    view.data = view.bytes != 0 ? static_cast<const std::byte*>(message.source.data) : &kNothing;
  } else {
    view.descriptor = &message;
    arrivals_.put(message, Place::waiting);
  }
  if (slot.handler == nullptr) {
    if (!std::exchange(unhandled_reported_, true))
      log::warn("wire loopback: dropped an active message of id {}: it has no handler (said once)", message.tag);
    am_discard(view);
    if (view.data != nullptr) arrivals_.release(message);
    return;
  }
  arrivals_.hand(message, slot.handler, slot.context, view);
}

}  // namespace brant::port::loopback
