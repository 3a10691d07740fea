#include "ops/rpc/outboxes.h"

#include <memory>
#include <new>

namespace brant::remote {

Outboxes::Outboxes(Engine& engine, Carrier& carrier, am::TroubleHandler trouble, void* context)
    : engine_(engine),
      carrier_(carrier),
      trouble_(trouble),
      context_(context),
      outboxes_(static_cast<std::size_t>(engine.job().size)) {}

Status Outboxes::post(Rank to, am::Message& message, bool at_once) noexcept {
  if (closed_) [[unlikely]]
    return Status::shutting_down;
  if (to == carrier_.self()) {
    if (!own_.takes(Outbox::cost(message))) return Status::limit_reached;
    own_.add(Outbox::cost(message));
    return carrier_.send(to, message);
  }
  const PeerOutbox* outbox = outboxes_.find(to.value);
  if (outbox == nullptr || !outbox->box.has_calls()) {
    const Status status = carrier_.send(to, message);
    if (status != Status::limit_reached) return status;
  }
  return at_once ? Status::limit_reached : keep(to, message);
}

void Outboxes::post_answer(Rank to, am::Message& message) noexcept {
  const PeerOutbox* known = outboxes_.find(to.value);
  const bool others_wait = known != nullptr && known->box.has_answers();
  Status status = closed_ ? Status::shutting_down : Status::limit_reached;
  if (!closed_ && !others_wait) status = carrier_.send_answer(to, message, am::Flow::credit);
  if (status == Status::ok) return;
  Outbox* outbox = status == Status::limit_reached ? of(to) : nullptr;
  if (outbox == nullptr) return carrier_.messenger().release(message);  // nobody is there any more to get it
  outbox->keep_answer(message);
  engine_.pollers().attach(*this);
}

Outbox* Outboxes::of(Rank peer) noexcept {
  if (PeerOutbox* known = outboxes_.find(peer.value)) return &known->box;
  try {
    auto made = std::make_unique<PeerOutbox>(PeerOutbox{peer, {}});
    std::unique_ptr<PeerOutbox>& place = outboxes_.place(peer.value);
    place = std::move(made);
    return &place->box;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

Status Outboxes::keep(Rank to, am::Message& message) noexcept {
  Outbox* outbox = of(to);
  if (outbox == nullptr) return Status::no_memory;
  if (!outbox->keep_call(message)) return Status::limit_reached;
  engine_.pollers().attach(*this);
  return Status::ok;
}

void Outboxes::leave_queue(const am::Message& message) noexcept {
  if (message.peer == carrier_.self().value) own_.remove(Outbox::cost(message));
}

void Outboxes::join_queue(const am::Message& message) noexcept {
  if (message.peer == carrier_.self().value) own_.add(Outbox::cost(message));
}

void Outboxes::drop_all_for(Rank peer) noexcept {
  if (PeerOutbox* outbox = outboxes_.find(peer.value)) outbox->box.drop_all(carrier_);
}

void Outboxes::forget(Rank peer) noexcept {
  drop_all_for(peer);
  outboxes_.forget(peer.value);
}

void Outboxes::close() noexcept {
  closed_ = true;
  engine_.pollers().detach(*this);
  outboxes_.for_each([&](PeerOutbox& each) { each.box.drop_all(carrier_); });
}

unsigned Outboxes::poll() noexcept {
  unsigned sent = 0;
  bool more = false;
  outboxes_.for_each([&](PeerOutbox& each) {
    if (each.box.empty()) return;
    const Status status = each.box.send_to(each.rank, carrier_, sent);
    if (status != Status::ok && status != Status::limit_reached) trouble_(context_, each.rank, status);
    more = more || !each.box.empty();
  });
  if (!more) engine_.pollers().detach(*this);
  return sent;
}

}  // namespace brant::remote
