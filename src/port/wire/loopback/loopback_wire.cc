#include "port/wire/loopback/loopback_wire.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "port/wire/loopback/loopback_memory.h"

// The data half: posting, matching, delivering. Opening, connecting and dying are in loopback_control.cc.
namespace brant::port::loopback {
namespace {

/// How many of the arriving messages compete for being next; bounds the cost of shuffling.
constexpr std::size_t kWindow = 64;
constexpr unsigned kAcceptMost = 64;

/// Stands in WireOp::request between completion and `deliver`, so that a second post of the op is noticed.
Record g_done_marker;

constexpr std::byte kNothing{};

}  // namespace

void LoopbackWire::complete(WireOp& op, Status status) noexcept {
  op.status = status;
  op.request = &g_done_marker;
  completed_.push(op);
  wake();
}

Status LoopbackWire::check_memory(const void* data, std::size_t bytes, MemoryKind kind,
                                  const WireOp& op) const noexcept {
  if (dead_) return Status::shutting_down;
  if (op.request != nullptr) return Status::invalid_argument;  // still pending, or not delivered yet
  if (bytes == 0) return Status::ok;
  if (data == nullptr || reinterpret_cast<std::uintptr_t>(data) + bytes < bytes) return Status::invalid_argument;
  return capabilities_.takes(kind) ? Status::ok : Status::wrong_kind;
}

Endpoint* LoopbackWire::checked(WireEndpoint* endpoint) const noexcept {
  auto* mine = reinterpret_cast<Endpoint*>(endpoint);
  return mine != nullptr && mine->wire == this && !mine->closed ? mine : nullptr;
}

LoopbackWire* LoopbackWire::peer_of(const Endpoint& endpoint) const noexcept {
  LoopbackWire* peer = fabric_.wire(endpoint.peer);
  return peer != nullptr && !peer->dead_ ? peer : nullptr;
}

// --- sending ---------------------------------------------------------------------------------------------------------

Message* LoopbackWire::make_message(Endpoint& endpoint, MessageKind type, std::uint64_t tag,
                                    std::span<const std::byte> header, ConstBuffer payload, bool eager,
                                    Status& why) noexcept {
  why = Status::limit_reached;
  if (!eager && !take_slot()) return nullptr;
  const std::size_t payload_at = (header.size() + 15) / 16 * 16;
  Message* message = fabric_.take_message();
  if (message == nullptr || !fabric_.give_storage(*message, payload_at + (eager ? payload.bytes : 0))) {
    if (message != nullptr) fabric_.give(*message);
    if (!eager) give_slot();
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
  if (eager) ++peer.eager_held_;
  if (fabric_.immediate()) {
    peer.accept(message);
  } else {
    message.due = peer.tick_ + fabric_.random_delay();
    peer.put_into(message, Place::arriving);
  }
  peer.wake();
  return op.status;
}

/// The receive is posted already: one copy, no record.
Status LoopbackWire::send_to_match(Receive& receive, std::uint64_t tag, ConstBuffer source, WireOp& op) noexcept {
  LoopbackWire& peer = *receive.wire;
  WireOp& landed = *receive.op;
  const Buffer landing = receive.landing;
  peer.give_slot();
  peer.receives_.give(receive);
  const bool fits = source.bytes <= landing.bytes;
  const bool copied = fabric_.copy(landing, {source.data, std::min(source.bytes, landing.bytes), source.kind});
  landed.bytes = source.bytes;
  landed.tag = tag;
  peer.complete(landed, !copied ? Status::device_failed : fits ? Status::ok : Status::truncated);
  op.bytes = source.bytes;
  op.status = Status::ok;
  if (fits || source.bytes <= fabric_.options().eager_bytes_max || !capabilities_.reports_truncation_to_sender)
    return Status::ok;
  complete(op, Status::truncated);
  return Status::in_progress;
}

Status LoopbackWire::tag_send(WireEndpoint* endpoint, std::uint64_t tag, ConstBuffer source, WireOp& op) noexcept {
  Status why = check_memory(source.data, source.bytes, source.kind, op);
  if (why != Status::ok) return why;
  Endpoint* to = checked(endpoint);
  if (to == nullptr) return Status::invalid_argument;
  op.tag = tag;
  LoopbackWire* peer = peer_of(*to);
  if (peer != nullptr && fabric_.immediate()) {
    if (Receive* receive = peer->take_match(tag)) return send_to_match(*receive, tag, source, op);
  }
  const bool room = peer == nullptr || peer->eager_held_ < fabric_.options().messages_max;
  const bool eager = room && source.bytes <= fabric_.options().eager_bytes_max;
  Message* message = make_message(*to, MessageKind::tagged, tag, {}, source, eager, why);
  return message != nullptr ? dispatch(*message, op) : why;
}

Status LoopbackWire::am_send(WireEndpoint* endpoint, unsigned id, std::span<const std::byte> header,
                             ConstBuffer payload, WireOp& op) noexcept {
  Status why = check_memory(payload.data, payload.bytes, payload.kind, op);
  if (why != Status::ok) return why;
  Endpoint* to = checked(endpoint);
  if (to == nullptr || id >= am_slots_.size() || header.size() > capabilities_.am_header_bytes_max ||
      (header.data() == nullptr && !header.empty())) {
    return Status::invalid_argument;
  }
  const LoopbackWire* peer = peer_of(*to);
  if (peer != nullptr && peer->eager_held_ >= fabric_.options().messages_max) return Status::limit_reached;
  const bool eager = payload.bytes <= capabilities_.am_eager_bytes_max;
  Message* message = make_message(*to, MessageKind::active, id, header, payload, eager, why);
  return message != nullptr ? dispatch(*message, op) : why;
}

// --- receiving -------------------------------------------------------------------------------------------------------

Messages& LoopbackWire::list_of(Place place) noexcept {
  switch (place) {
    case Place::unexpected: return unexpected_;
    case Place::inbox: return inbox_;
    case Place::waiting: return waiting_;
    default: return arriving_;
  }
}

void LoopbackWire::put_into(Message& message, Place place) noexcept {
  message.where = place;
  if (place == Place::inbox) ++in_inbox_;
  list_of(place).push_back(message);
}

void LoopbackWire::unlink(Message& message) noexcept {
  if (message.where != Place::none) list_of(message.where).remove(message);
  if (message.where == Place::inbox) --in_inbox_;
  message.where = Place::none;
}

Receive* LoopbackWire::take_match(std::uint64_t tag) noexcept {
  for (Receive* receive = posted_.front(); receive != nullptr; receive = Receives::next(*receive)) {
    if (((receive->tag ^ tag) & receive->mask) != 0) continue;
    posted_.remove(*receive);
    return receive;
  }
  return nullptr;
}

void LoopbackWire::unpend(Message& message) noexcept {
  auto& pending = message.endpoint->pending;
  if (pending.linked(message)) pending.remove(message);
}

void LoopbackWire::end_at_sender(Message& message, Status status) noexcept {
  WireOp* op = std::exchange(message.op, nullptr);
  if (op == nullptr) return;
  unpend(message);
  message.from->give_slot();
  const bool tells = status != Status::truncated || message.from->capabilities_.reports_truncation_to_sender;
  message.from->complete(*op, tells ? status : Status::ok);
}

void LoopbackWire::release(Message& message) noexcept {
  unlink(message);
  if (message.eager && eager_held_ > 0) --eager_held_;  // 0 only after the handler killed this wire
  if (&message == in_handler_) {
    released_in_handler_ = true;
  } else {
    fabric_.give(message);
  }
}

void LoopbackWire::land(Message& message, Buffer landing, WireOp& op) noexcept {
  const std::size_t bytes = message.source.bytes;
  const bool copied = fabric_.copy(landing, {message.source.data, std::min(bytes, landing.bytes), message.source.kind});
  const Status status = !copied ? Status::device_failed : bytes <= landing.bytes ? Status::ok : Status::truncated;
  op.bytes = bytes;
  op.tag = message.type == MessageKind::tagged ? message.tag : 0;
  end_at_sender(message, status == Status::truncated ? status : Status::ok);
  release(message);
  complete(op, status);
}

/// What a message does on arrival: lands in a posted receive, or waits for one, or for `deliver`.
void LoopbackWire::accept(Message& message) noexcept {
  if (message.type == MessageKind::active) {
    put_into(message, Place::inbox);
    return;
  }
  Receive* receive = take_match(message.tag);
  if (receive == nullptr) {
    put_into(message, Place::unexpected);
    return;
  }
  const Buffer landing = receive->landing;
  WireOp& op = *receive->op;
  give_slot();
  receives_.give(*receive);
  land(message, landing, op);
}

Status LoopbackWire::tag_recv(std::uint64_t tag, std::uint64_t mask, Buffer landing, WireOp& op) noexcept {
  const Status why = check_memory(landing.data, landing.bytes, landing.kind, op);
  if (why != Status::ok) return why;
  for (Message* message = unexpected_.front(); message != nullptr; message = Messages::next(*message)) {
    if (((message->tag ^ tag) & mask) != 0) continue;
    land(*message, landing, op);
    return Status::in_progress;
  }
  if (!take_slot()) return Status::limit_reached;
  Receive* receive = receives_.take();
  if (receive == nullptr) {
    give_slot();
    return Status::no_memory;
  }
  receive->kind = RecordKind::receive;
  receive->wire = this;
  receive->op = &op;
  receive->tag = tag;
  receive->mask = mask;
  receive->landing = landing;
  op.request = static_cast<Record*>(receive);
  op.status = Status::in_progress;
  posted_.push_back(*receive);
  return Status::in_progress;
}

void LoopbackWire::cancel(WireOp& op) noexcept {
  auto* record = static_cast<Record*>(op.request);
  if (dead_ || record == nullptr || record->kind != RecordKind::receive || record->op != &op) return;
  auto& receive = static_cast<Receive&>(*record);
  posted_.remove(receive);
  receives_.give(receive);
  give_slot();
  complete(op, Status::canceled);
}

void LoopbackWire::set_am_handler(unsigned id, AmHandler handler, void* context) noexcept {
  if (id < am_slots_.size()) am_slots_[id] = {handler, context};
}

Status LoopbackWire::am_receive(AmMessage& message, Buffer landing, WireOp& op) noexcept {
  const Status why = check_memory(landing.data, landing.bytes, landing.kind, op);
  if (why != Status::ok) return why;
  auto* waiting = static_cast<Message*>(message.descriptor);
  if (message.data != nullptr || waiting == nullptr || waiting->where != Place::waiting || waiting->to != this)
    return Status::invalid_argument;
  message.descriptor = nullptr;
  if (waiting->source_gone) {
    release(*waiting);
    op.bytes = 0;
    complete(op, Status::peer_lost);
  } else {
    land(*waiting, landing, op);
  }
  return Status::in_progress;
}

void LoopbackWire::am_discard(AmMessage& message) noexcept {
  auto* waiting = static_cast<Message*>(message.descriptor);
  if (dead_ || message.data != nullptr || waiting == nullptr || waiting->where != Place::waiting || waiting->to != this)
    return;
  message.descriptor = nullptr;
  end_at_sender(*waiting, Status::ok);
  release(*waiting);
}

// --- progress --------------------------------------------------------------------------------------------------------

/// An earlier message that this one must not overtake would be found in front of it.
bool LoopbackWire::overtakes_nobody(const Message& message) const noexcept {
  const LoopbackOptions& options = fabric_.options();
  for (const Message* earlier = arriving_.front(); earlier != &message; earlier = Messages::next(*earlier)) {
    const bool same_pair = earlier->from == message.from;
    const bool same_lane = !options.shuffle_tags || (earlier->type == message.type && earlier->tag == message.tag);
    if (same_pair ? same_lane : !options.shuffle_pairs) return false;
  }
  return true;
}

unsigned LoopbackWire::accept_due() noexcept {
  unsigned accepted = 0;
  while (accepted < kAcceptMost && in_inbox_ < fabric_.options().messages_max) {
    // Draws one of those that may come next, each with the same chance, in one pass.
    Message* chosen = nullptr;
    std::uint64_t ready = 0;
    std::size_t seen = 0;
    for (Message* message = arriving_.front(); message != nullptr && seen < kWindow;
         message = Messages::next(*message), ++seen) {
      if (message->due > tick_ || !overtakes_nobody(*message)) continue;
      if (fabric_.random() % ++ready == 0) chosen = message;
    }
    if (chosen == nullptr) break;
    unlink(*chosen);
    accept(*chosen);
    ++accepted;
  }
  return accepted;
}

unsigned LoopbackWire::progress() noexcept {
  if (dead_) return 0;
  ++tick_;
  unsigned events = memory_->progress();
  if (!fabric_.immediate()) events += accept_due();
  // What arrived in the post itself is news too.
  return events + (completed_.empty() ? 0u : 1u) + (inbox_.empty() ? 0u : 1u);
}

unsigned LoopbackWire::deliver(unsigned limit) noexcept {
  unsigned done = 0;
  // By turns, so that neither a stream of completions nor one of messages starves the other.
  while (done < limit && !dead_) {
    WireOp* op = completed_.pop();
    if (op != nullptr) {
      ++done;
      op->request = nullptr;
      if (op->on_complete != nullptr) op->on_complete(*op);
    }
    Message* message = done < limit ? inbox_.front() : nullptr;
    if (message != nullptr) {
      ++done;
      hand_over(*message);
    }
    if (op == nullptr && message == nullptr) break;
  }
  return done;
}

void LoopbackWire::hand_over(Message& message) noexcept {
  unlink(message);
  const AmSlot slot = am_slots_[message.tag];
  AmMessage view;
  view.header = {message.storage, message.header_bytes};
  view.bytes = message.source.bytes;
  if (message.eager) {
    view.data = view.bytes != 0 ? static_cast<const std::byte*>(message.source.data) : &kNothing;
  } else {
    view.descriptor = &message;
    put_into(message, Place::waiting);
  }
  if (slot.handler == nullptr) {
    if (!std::exchange(unhandled_reported_, true))
      log::warn("wire loopback: dropped an active message of id {}: it has no handler (said once)", message.tag);
    am_discard(view);
    if (view.data != nullptr) release(message);
    return;
  }
  // A handler may deliver again from within; the outer message then still waits for its turn.
  Message* outer = std::exchange(in_handler_, &message);
  const bool outer_released = std::exchange(released_in_handler_, false);
  slot.handler(slot.context, view);
  if (message.eager) release(message);
  const bool released = std::exchange(released_in_handler_, outer_released);
  in_handler_ = outer;
  if (released) fabric_.give(message);
}

}  // namespace brant::port::loopback
