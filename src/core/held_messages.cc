#include "core/held_messages.h"

#include <new>
#include <utility>

#include "base/log.h"

namespace brant {

HeldMessages::HeldMessages(port::Wire& wire) noexcept : wire_(wire) {
  for (unsigned id = 0; id < kIds; ++id) {
    slots_[id] = {this, id};
    wire_.set_am_handler(id, &HeldMessages::hold, &slots_[id]);
  }
}

void HeldMessages::hold(void* slot, port::AmMessage& message) noexcept {
  auto& [messages, id] = *static_cast<Slot*>(slot);
  const bool complete = message.bytes == 0 || message.data != nullptr;
  if (!complete || messages->held_.size() >= kHeldMax) {
    log::error("an active message {} came that nobody claims (held {}, bound {}): dropped", id, messages->held_.size(),
               kHeldMax);
    if (!complete) messages->wire_.am_discard(message);
    return;
  }
  try {
    Held held{id, {message.header.begin(), message.header.end()}, {}};
    if (message.bytes != 0) held.data.assign(message.data, message.data + message.bytes);
    messages->held_.push_back(std::move(held));
  } catch (const std::bad_alloc&) {
    log::error("no memory to hold an active message {} until somebody claims it: dropped", id);
  }
}

void HeldMessages::claim(unsigned id, port::AmHandler handler, void* context) {
  std::vector<Held> earlier;
  earlier.reserve(held_.size());
  wire_.set_am_handler(id, handler, context);
  std::erase_if(held_, [&](Held& held) {
    if (held.id != id) return false;
    earlier.push_back(std::move(held));
    return true;
  });
  for (const Held& held : earlier) {
    port::AmMessage message{held.header, held.data.empty() ? nullptr : held.data.data(), held.data.size(), nullptr};
    handler(context, message);
  }
}

}  // namespace brant
