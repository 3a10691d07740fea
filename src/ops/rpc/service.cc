#include "ops/rpc/service.h"

#include <algorithm>

#include "base/log.h"
#include "base/seconds.h"

namespace brant::remote {

RpcService::RpcService(Engine& engine)
    : engine_(engine),
      carrier_(engine),
      messenger_(carrier_.messenger()),
      rank_{engine.job().rank},
      answers_(rank_),
      outboxes_(engine, carrier_, &RpcService::on_trouble, this),
      landings_(carrier_, &RpcService::on_data, this),
      heard_(static_cast<std::size_t>(engine.job().size)) {
  troubles_.reserve(2 * heard_.size());  // its end and its loss
  silent_.reserve(heard_.size());
  messenger_.claim(am::ServiceId::rpc, &RpcService::on_message, &RpcService::on_trouble, this);
}

am::Message* RpcService::open(const CallHeader& header, std::size_t bytes) noexcept {
  am::Message* message = messenger_.make(bytes);
  if (message != nullptr) message->set_header(header);
  return message;
}

Status RpcService::ask(Rank to, const Function& function, am::Message& message, const detail::Waiting& waiting,
                       bool at_once) noexcept {
  const Peer* const peer = engine_.peers().find(to.value);
  if (peer != nullptr && peer->ended && !peer->joined) {
    answers_.refuse(waiting, function, to, Status::shutting_down);
    return Status::shutting_down;
  }
  auto header = message.header<CallHeader>();
  header.number = answers_.expect(waiting, function, to);
  Status status = Status::limit_reached;
  if (header.number != 0) {
    message.set_header(header);
    status = post(to, message, at_once);
    if (status == Status::ok) return status;
    answers_.forget(header.number);
  }
  answers_.refuse(waiting, function, to, status);
  return status;
}

void RpcService::on_message(void* context, am::Message& message) noexcept {
  auto& self = *static_cast<RpcService*>(context);
  const bool fits = message.wire.header_bytes == sizeof(CallHeader);
  if (!fits || !message.header<CallHeader>().is_sound()) [[unlikely]] {
    self.engine_.peers().distrust(message.peer, "a remote call with a damaged header");
    return self.messenger_.release(message);
  }
  const auto from = static_cast<std::size_t>(message.peer);
  if (from < self.heard_.size()) self.heard_[from] = true;
  const bool has_data = message.header<CallHeader>().data != 0;
  if (!has_data) return self.enqueue(message);
  if (self.landings_.take(message)) return;
  self.engine_.peers().distrust(message.peer, "a remote call whose data cannot be");
  self.messenger_.release(message);
}

void RpcService::on_data(void* context, am::Message& message) noexcept {
  static_cast<RpcService*>(context)->enqueue(message);
}

void RpcService::enqueue(am::Message& message) noexcept {
  due_.push_back(message);
  wake();
}

void RpcService::release(am::Message& message) noexcept {
  if (message.header<CallHeader>().data != 0) landings_.close(message);
  messenger_.release(message);
}

void RpcService::on_trouble(void* context, Rank peer, Status status) noexcept {
  auto& self = *static_cast<RpcService*>(context);
  self.outboxes_.drop_all_for(peer);
  self.troubles_.emplace_back(peer, status);
  self.wake();
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
    answers_.fail_all_of(peer, status);
  }
  am::Message* message = due_.pop_front();
  if (message == nullptr) return;
  if (!due_.empty()) wake();
  run(*message);
}

/// Calls that have waited go before all else, in their order.
void RpcService::run_first(am::MessageList calls) noexcept {
  if (calls.empty()) return;
  am::MessageList behind = std::exchange(due_, {});
  while (am::Message* call = calls.pop_front()) {
    outboxes_.join_queue(*call);
    due_.push_back(*call);
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

unsigned RpcService::part_from(Peer&) noexcept {
  parted_ = true;
  run_first(parts_.take_all());  // to be refused
  return 0;
}

void RpcService::peer_ended(Peer& peer) noexcept {
  if (!peer.joined && !has_heard(peer.rank)) silent_.push_back({peer.rank, Clock::now() + kLateAnswers});
}

void RpcService::look_around() noexcept {
  if (silent_.empty()) return;
  const TimePoint now = Clock::now();
  std::erase_if(silent_, [&](const Silent& each) {
    if (has_heard(each.rank)) return true;  // it answers by itself
    if (now < each.until) return false;
    troubles_.emplace_back(each.rank, Status::shutting_down);
    wake();
    return true;
  });
}

bool RpcService::stalled(std::chrono::nanoseconds idle, bool) noexcept {
  if (answers_.count() == 0) return false;
  try {
    log::warn("rank {} waits for the answers of {} remote calls, one of them of {}; nothing has moved for {:.1f} s",
              rank_.value, answers_.count(), answers_.example(), in_seconds(idle));
  } catch (const std::exception&) {
    log::warn("rank {} waits for answers of remote calls, and has no memory to say of which", rank_.value);
  }
  return true;
}

bool RpcService::forget(Peer& peer) noexcept {
  outboxes_.forget(peer.rank);
  return true;
}

void RpcService::let_go() noexcept {
  messenger_.claim(am::ServiceId::rpc, nullptr, nullptr, nullptr);
  outboxes_.close();
  while (running_ != nullptr) running_->frame.destroy();  // it leaves the list
  answers_.fail_all(Status::canceled);
  for (am::MessageList calls = parts_.take_all(); am::Message* message = calls.pop_front();) release(*message);
  while (am::Message* message = due_.pop_front()) release(*message);
  landings_.abandon();
}

}  // namespace brant::remote
