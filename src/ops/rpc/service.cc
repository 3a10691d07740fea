#include "ops/rpc/service.h"

#include <new>

#include <fmt/format.h>

#include "base/error_text.h"
#include "base/log.h"
#include "base/seconds.h"

namespace brant::remote {

RpcService::RpcService(Engine& engine)
    : engine_(engine),
      messenger_(engine.service<am::Messenger>()),
      rank_{engine.job().rank},
      outboxes_(static_cast<std::size_t>(engine.job().size)) {
  troubles_.reserve(static_cast<std::size_t>(engine.job().size));
  messenger_.claim(am::ServiceId::rpc, &RpcService::on_message, &RpcService::on_trouble, this);
}

am::Message* RpcService::open(const CallHeader& header, std::size_t bytes) noexcept {
  am::Message* message = messenger_.make(bytes);
  if (message != nullptr) message->set_header(header);
  return message;
}

Status RpcService::post(Rank to, am::Message& message, bool at_once) noexcept {
  if (closed_) [[unlikely]]
    return Status::shutting_down;
  const std::size_t cost = Outbox::cost(message);
  if (to == rank_) {
    if (!own_.takes(cost)) return Status::limit_reached;
    own_.add(cost);
    return messenger_.send(to, am::ServiceId::rpc, message);
  }
  const PeerOutbox* outbox = outboxes_.find(to.value);
  if (outbox == nullptr || !outbox->box.has_calls()) {
    const Status status = messenger_.send(to, am::ServiceId::rpc, message);
    if (status != Status::limit_reached) return status;
  }
  return at_once ? Status::limit_reached : keep(to, message);
}

Outbox* RpcService::outbox_of(Rank peer) noexcept {
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

Status RpcService::keep(Rank to, am::Message& message) noexcept {
  Outbox* outbox = outbox_of(to);
  if (outbox == nullptr) return Status::no_memory;
  if (!outbox->keep_call(message)) return Status::limit_reached;
  engine_.pollers().attach(*this);
  return Status::ok;
}

Status RpcService::ask(Rank to, const Function& function, am::Message& message, const detail::Waiting& waiting,
                       bool at_once) noexcept {
  auto header = message.header<CallHeader>();
  header.number = expect(waiting, function, to);
  Status status = Status::limit_reached;
  if (header.number != 0) {
    message.set_header(header);
    status = post(to, message, at_once);
    if (status == Status::ok) return status;
    take(*waiting_.find(header.number));
  }
  refuse(waiting, function, to, status);
  return status;
}

std::uint32_t RpcService::expect(const detail::Waiting& waiting, const Function& function, Rank of) noexcept {
  try {
    const std::uint32_t number = waiting_.add(waiting, {&function});
    if (number == 0) return 0;
    waiting_.find(number)->rank = of.value;
    ++waiting_count_;
    return number;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

detail::Waiting RpcService::take(WaitingCalls::Entry& line) noexcept {
  --waiting_count_;
  return waiting_.take(line);
}

void RpcService::refuse(const detail::Waiting& waiting, const Function& function, Rank to,
                        Status status) const noexcept {
  detail::Waiting refused = waiting;
  std::exception_ptr why;
  try {
    const std::string cure = status == Status::limit_reached
                                 ? fmt::format(
                                       ". At most {} calls or {} bytes wait for one rank, and {} for answers: "
                                       "await some, or let progress run, before calling more",
                                       Outbox::kCallsMax, Outbox::kBytesMax, WaitingCalls::kRepliesMax)
                                 : std::string();
    why = std::make_exception_ptr(
        Error(status, fmt::format("rank {} could not call {} at rank {}: {} ({}){}", rank_.value, function.name,
                                  to.value, status_text(status), status_name(status), cure)));
  } catch (...) {
    why = std::current_exception();
  }
  refused.deliver(refused.storage, nullptr, why);
}

void RpcService::on_message(void* context, am::Message& message) noexcept {
  auto& self = *static_cast<RpcService*>(context);
  const bool fits = message.wire.header_bytes == sizeof(CallHeader);
  if (!fits || !message.header<CallHeader>().is_sound()) [[unlikely]] {
    self.engine_.peers().distrust(message.peer, "a remote call with a damaged header");
    return self.release(message);
  }
  self.due_.push_back(message);
  ++self.due_count_;
  self.wake();
}

void RpcService::on_trouble(void* context, Rank peer, Status status) noexcept {
  static_cast<RpcService*>(context)->note_trouble(peer, status);
}

void RpcService::note_trouble(Rank peer, Status status) noexcept {
  if (PeerOutbox* outbox = outboxes_.find(peer.value)) outbox->box.drop_all(messenger_);
  troubles_.emplace_back(peer, status);
  wake();
}

unsigned RpcService::poll() noexcept {
  unsigned sent = 0;
  bool more = false;
  outboxes_.for_each([&](PeerOutbox& each) {
    if (each.box.empty()) return;
    const Status status = each.box.send_to(each.rank, messenger_, sent);
    if (status != Status::ok && status != Status::limit_reached) note_trouble(each.rank, status);
    more = more || !each.box.empty();
  });
  if (!more) engine_.pollers().detach(*this);
  return sent;
}

void RpcService::wake() noexcept {
  if (turn_.pending()) return;
  turn_.delivered = {[](void* self, const OpResult&) noexcept { static_cast<RpcService*>(self)->take_turn(); }, this};
  engine_.completions().complete(turn_, {});
}

/// One message a turn: what fires completions says how many turns there are in a row.
void RpcService::take_turn() noexcept {
  while (!troubles_.empty()) {
    const auto [peer, status] = troubles_.back();
    troubles_.pop_back();
    fail_all_of(peer.value, false, status);
  }
  am::Message* message = due_.pop_front();
  if (message == nullptr) return;
  --due_count_;
  if (!due_.empty()) wake();
  run(*message);
}

void RpcService::add_part(DistributedPart& part) { run_first(parts_.add(part)); }

/// Calls that have waited go before all else, in their order.
void RpcService::run_first(am::MessageList calls) noexcept {
  if (calls.empty()) return;
  am::MessageList behind = std::exchange(due_, {});
  while (am::Message* call = calls.pop_front()) {
    if (call->peer == rank_.value) own_.add(Outbox::cost(*call));
    due_.push_back(*call);
    ++due_count_;
  }
  while (am::Message* message = behind.pop_front()) due_.push_back(*message);
  wake();
}

void RpcService::enter(RunningCall& call) noexcept {
  call.next = running_;
  if (running_ != nullptr) running_->previous = &call;
  running_ = &call;
}

void RpcService::leave(RunningCall& call) noexcept {
  (call.previous != nullptr ? call.previous->next : running_) = call.next;
  if (call.next != nullptr) call.next->previous = call.previous;
  release(*static_cast<am::Message*>(call.invocation.message));
}

void RpcService::fail_waiting(WaitingCalls::Entry& line, Status status, const std::string& text) noexcept {
  std::exception_ptr error;
  try {
    error = std::make_exception_ptr(Error(status, text));
  } catch (...) {
    error = std::current_exception();
  }
  detail::Waiting waiting = take(line);
  waiting.deliver(waiting.storage, nullptr, error);
}

void RpcService::fail_all_of(std::int32_t rank, bool any, Status status) noexcept {
  for (const std::uint32_t number : waiting_.numbers(rank, any)) {
    WaitingCalls::Entry* line = waiting_.find(number);
    if (line == nullptr) continue;  // whom an earlier one told has ended it
    fail_waiting(*line, status,
                 fmt::format("rank {} will get no answer from {} at rank {}: {} ({})", rank_.value,
                             line->function->name, line->rank, status_text(status), status_name(status)));
  }
}

unsigned RpcService::part_from(Peer&) noexcept {
  parted_ = true;
  run_first(parts_.take_all());  // to be refused
  return 0;
}

bool RpcService::stalled(std::chrono::nanoseconds idle, bool) noexcept {
  if (waiting_count_ == 0) return false;
  try {
    std::string first;
    waiting_.for_each([&](const WaitingCalls::Entry& line) {
      if (first.empty()) first = fmt::format("{} at rank {}", line.function->name, line.rank);
    });
    log::warn("rank {} waits for the answers of {} remote calls, one of them of {}; nothing has moved for {:.1f} s",
              rank_.value, waiting_count_, first, in_seconds(idle));
  } catch (const std::exception&) {
    log::warn("rank {} waits for answers of remote calls, and has no memory to say of which", rank_.value);
  }
  return true;
}

bool RpcService::forget(Peer& peer) noexcept {
  if (PeerOutbox* outbox = outboxes_.find(peer.rank.value)) outbox->box.drop_all(messenger_);
  outboxes_.forget(peer.rank.value);
  return true;
}

void RpcService::let_go() noexcept {
  closed_ = true;
  messenger_.claim(am::ServiceId::rpc, nullptr, nullptr, nullptr);
  engine_.pollers().detach(*this);
  while (running_ != nullptr) running_->frame.destroy();
  fail_all_of(0, true, Status::canceled);
  while (am::Message* message = due_.pop_front()) release(*message);
  for (am::MessageList calls = parts_.take_all(); am::Message* message = calls.pop_front();) release(*message);
  outboxes_.for_each([&](PeerOutbox& each) { each.box.drop_all(messenger_); });
}

}  // namespace brant::remote
