#include "models/chare/sending.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "models/chare/data_call.h"

namespace brant::detail {
namespace {

constexpr unsigned kTreeArity = 4;  // children of a rank in a broadcast

/// Ranks to which `self` passes on what `root` spreads.
template <typename Visit>
void for_each_child(std::int32_t self, std::int32_t root, std::int32_t ranks, Visit&& visit) {
  const std::int32_t place = (self - root + ranks) % ranks;
  for (unsigned i = 1; i <= kTreeArity; ++i) {
    const std::int64_t child = std::int64_t{place} * kTreeArity + i;
    if (child < ranks) visit(static_cast<std::int32_t>((child + root) % ranks));
  }
}

}  // namespace

Sending::Sending(const ProgramContext& context, Activity& activity, Messages& messages, ReadyQueue& queue)
    : context_(context),
      activity_(activity),
      messages_(messages),
      queue_(queue),
      outboxes_(static_cast<std::size_t>(context.ranks)),
      troubles_(static_cast<std::size_t>(context.ranks), Status::ok) {}

std::optional<Sending::Trouble> Sending::take_trouble() noexcept {
  const auto found = std::ranges::find_if(troubles_, [](Status status) { return status != Status::ok; });
  in_trouble_ = found != troubles_.end();
  if (!in_trouble_) return std::nullopt;
  return Trouble(Rank{static_cast<std::int32_t>(found - troubles_.begin())}, std::exchange(*found, Status::ok));
}

void Sending::send_to(std::int32_t destination, am::Message& message, const Envelope& envelope) {
  if (static_cast<std::size_t>(destination) >= outboxes_.size()) [[unlikely]] {
    messages_.drop(message);
    throw Error(Status::invalid_argument,
                fmt::format("a message names rank {}: the job has ranks 0 to {}", destination, context_.ranks - 1));
  }
  am::MessageList& outbox = outboxes_[static_cast<std::size_t>(destination)];
  if (!envelope.urgent()) ++activity_.wire_sent;
  if (outbox.empty() || envelope.urgent()) {
    messages_.count_out(message);  // the messenger takes the notes over
    const Status status = send(destination, message, envelope);
    if (status == Status::ok) return;
    if (status != Status::limit_reached) {
      messages_.let_go(message);
      note_trouble(Rank{destination}, status);
      return;
    }
    messages_.count_in(message);
  }
  message.peer = destination;
  outbox.push_back(message);
  ++in_outboxes_;
}

/// The message goes first, with the numbers that its data will have: a message that must wait for room leaves no hole
/// in the numbering.
Status Sending::send_with_data(std::int32_t to, am::Message& message, const Envelope& envelope, am::Flow flow) {
  const DataHeader before = data_header(message, envelope);
  Status status = Status::ok;
  try {
    set_data_header(message, envelope, {context_.lanes.next_number(to), DataState::numbers, before.count});
    status = context_.messenger.send(Rank{to}, am::ServiceId::chare, message, flow);
  } catch (const Error& error) {
    status = error.status();
  } catch (const std::bad_alloc&) {
    status = Status::no_memory;
  }
  if (status == Status::ok) {
    context_.lanes.send(to, place_as<DataOrigin>(before));
  } else {
    set_data_header(message, envelope, before);
  }
  return status;
}

void Sending::send_copy(std::int32_t destination, const am::Message& message, const Envelope& envelope) {
  am::Message& copy = messages_.make(envelope, message.bytes);
  if (message.bytes != 0) std::memcpy(copy.data, message.data, message.bytes);
  share_data(copy, envelope);
  if (!envelope.urgent()) messages_.count_in(copy);
  if (envelope.counted()) ++activity_.calls_sent;
  send_to(destination, copy, envelope);
}

void Sending::forward_by_tree(const am::Message& message, const Envelope& envelope) {
  for_each_child(context_.rank, static_cast<std::int32_t>(envelope.reply), context_.ranks,
                 [&](std::int32_t child) { send_copy(child, message, envelope); });
}

bool Sending::flush() {
  bool moved = false;
  for (std::size_t destination = 0; destination < outboxes_.size(); ++destination) {
    am::MessageList& outbox = outboxes_[destination];
    while (am::Message* message = outbox.front()) {
      outbox.pop_front();
      messages_.count_out(*message);
      const auto to = static_cast<std::int32_t>(destination);
      const auto envelope = message->header<Envelope>();
      const Status status = send(to, *message, envelope);
      if (status == Status::limit_reached) {
        messages_.count_in(*message);
        outbox.push_front(*message);
        break;
      }
      --in_outboxes_;
      moved = true;
      if (status != Status::ok) {
        messages_.let_go(*message);
        note_trouble(Rank{to}, status);
      }
    }
  }
  return moved;
}

void Sending::drain_urgent() {
  for (am::MessageList& outbox : outboxes_) {
    am::MessageList urgent;
    while (am::Message* message = outbox.pop_front()) {
      --in_outboxes_;
      if (message->header<Envelope>().urgent()) {
        urgent.push_back(*message);
      } else {
        messages_.drop(*message);
      }
    }
    while (am::Message* message = urgent.pop_front()) {
      outbox.push_back(*message);
      ++in_outboxes_;
    }
  }
  const TimePoint deadline = deadline_after(context_.options.held_back_max);
  while (in_outboxes_ != 0 && Clock::now() < deadline) {
    context_.engine.progress().step();
    flush();
  }
}

Envelope Sending::control_envelope(MessageKind kind, std::uint64_t code) const noexcept {
  Envelope envelope;
  envelope.kind = kind;
  envelope.key = code;
  if (envelope.by_tree()) envelope.reply = static_cast<std::uint32_t>(context_.rank);
  return envelope;
}

void Sending::spread(MessageKind kind, std::int64_t code) {
  const Envelope envelope = control_envelope(kind, static_cast<std::uint64_t>(code));
  am::Message& message = messages_.make(envelope, 0);
  forward_by_tree(message, envelope);
  messages_.let_go(message);
}

void Sending::send_code(std::int32_t to, MessageKind kind, std::int64_t code) {
  const Envelope envelope = control_envelope(kind, static_cast<std::uint64_t>(code));
  send_to(to, messages_.make(envelope, 0), envelope);
}

void Sending::let_all_go() noexcept {
  for (am::MessageList& outbox : outboxes_) {
    while (am::Message* message = outbox.pop_front()) messages_.let_go(*message);
  }
}

const am::Message* Sending::first_held_call() const noexcept {
  for (const am::MessageList& outbox : outboxes_) {
    const am::Message* first = outbox.front();
    if (first != nullptr && first->header<Envelope>().counted()) return first;
  }
  return nullptr;
}

}  // namespace brant::detail
