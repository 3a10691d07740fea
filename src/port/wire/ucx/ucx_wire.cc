#include "port/wire/ucx/ucx_wire.h"

#include <cstring>
#include <utility>

#include "base/log.h"
#include "brant/base/clock.h"
#include "port/wire/ucx/ucx_atomics.h"
#include "port/wire/ucx/ucx_remote_memory.h"
#include "port/wire/ucx/ucx_status.h"

namespace brant::port::ucx {
namespace {

/// Stands in WireOp::request between completion and `deliver`, so that a second post of the op is noticed.
char g_done_marker = 0;
void* const kDone = &g_done_marker;

/// Bound of the progress that abandon makes.
constexpr int kAbandonProgressMost = 1024;
/// Of all receives that are taken back within kTakeBackTurn together: whoever closes many towards one that was cut off
/// must not be held for the sum.
constexpr auto kTakeBackMost = std::chrono::seconds(2);
constexpr auto kTakeBackTurn = std::chrono::seconds(10);

/// Where the payload of an empty message lies: `data` is null only for payloads that wait.
constexpr std::byte kNothing{};

}  // namespace

Status UcxWire::check_memory(const void* data, std::size_t bytes, MemoryKind kind, const WireOp& op) const noexcept {
  if (op.request != nullptr) return Status::invalid_argument;  // still pending, or not delivered yet
  if (bytes == 0) return Status::ok;
  if (data == nullptr || reinterpret_cast<std::uintptr_t>(data) + bytes < bytes) return Status::invalid_argument;
  return capabilities_.takes(kind) ? Status::ok : Status::wrong_kind;
}

UcxEndpoint* UcxWire::checked(WireEndpoint* endpoint, Status& why) const noexcept {
  auto* mine = reinterpret_cast<UcxEndpoint*>(endpoint);
  if (mine == nullptr || mine->wire != this || mine->closed) {
    why = Status::invalid_argument;
    return nullptr;
  }
  if (mine->failed) {
    why = Status::peer_lost;
    return nullptr;
  }
  return mine;
}

UcxRequest* UcxWire::start(RequestKind kind, UcxEndpoint* endpoint, WireOp& op) noexcept {
  UcxRequest* request = requests_->take();
  if (request == nullptr) return nullptr;
  request->op = &op;
  request->endpoint = endpoint;
  request->kind = kind;
  request->state = RequestState::posting;
  return request;
}

Status UcxWire::posted(ucs_status_ptr_t answer, UcxRequest& request, WireOp& op) noexcept {
  if (answer == nullptr) {
    op.status = Status::ok;
    requests_->give(request);
    return Status::ok;
  }
  if (UCS_PTR_IS_ERR(answer)) {
    const Status status = status_of(UCS_PTR_STATUS(answer));
    requests_->give(request);
    return status;
  }
  if (request.state == RequestState::ended) {
    complete_later(op, request.ended_status);
    requests_->give(request);
    return Status::in_progress;
  }
  request.ucx_holds = true;
  return wait_without_ucx(request);
}

Status UcxWire::wait_without_ucx(UcxRequest& request) noexcept {
  request.state = RequestState::pending;
  if (request.endpoint != nullptr) request.endpoint->pending.add(request);
  request.op->request = &request;
  request.op->status = Status::in_progress;
  return Status::in_progress;
}

void UcxWire::complete_later(WireOp& op, Status status) noexcept {
  op.status = status;
  op.request = kDone;
  completed_.push(op);
}

/// UCX's callback: it has done with the request.
void UcxWire::ended(UcxRequest& request, ucs_status_t ucx_status) noexcept {
  Status status = status_of(ucx_status);
  if (request.state == RequestState::posting) {
    request.state = RequestState::ended;
    request.ended_status = status;
    return;
  }
  request.ucx_holds = false;
  if (status != Status::ok && request.endpoint != nullptr && request.endpoint->closed) status = Status::canceled;
  if (request.kind == RequestKind::flush && status == Status::ok && request.op != nullptr &&
      atomics_->pending_before(request))
    return;
  finish(request, status);
}

void UcxWire::finish(UcxRequest& request, Status status) noexcept {
  UcxRequestList::remove(request);
  if (request.op != nullptr) complete_later(*request.op, status);
  requests_->give(request);
}

/// The caller gets his op back; a late callback of UCX will find only our own record.
void UcxWire::give_up(UcxRequest& request) noexcept {
  UcxRequestList::remove(request);
  if (WireOp* op = std::exchange(request.op, nullptr); op != nullptr) complete_later(*op, Status::canceled);
  if (!request.ucx_holds) requests_->give(request);
}

Status UcxWire::tag_send(WireEndpoint* endpoint, std::uint64_t tag, ConstBuffer source, WireOp& op) noexcept {
  Status why = check_memory(source.data, source.bytes, source.kind, op);
  if (why != Status::ok) return why;
  UcxEndpoint* to = checked(endpoint, why);
  if (to == nullptr) return why;
  UcxRequest* request = start(RequestKind::send, to, op);
  if (request == nullptr) return Status::limit_reached;
  op.bytes = source.bytes;
  op.tag = tag;
  send_params_.request = request;
  send_params_.memory_type = memory_type_of(source.kind);
  return posted(library_.tag_send_nbx(to->handle, source.data, source.bytes, tag, &send_params_), *request, op);
}

Status UcxWire::tag_recv(std::uint64_t tag, std::uint64_t mask, Buffer landing, WireOp& op) noexcept {
  const Status why = check_memory(landing.data, landing.bytes, landing.kind, op);
  if (why != Status::ok) return why;
  UcxRequest* request = start(RequestKind::receive, nullptr, op);
  if (request == nullptr) return Status::limit_reached;
  recv_params_.request = request;
  recv_params_.memory_type = memory_type_of(landing.kind);
  recv_info_ = {};
  const ucs_status_ptr_t answer = library_.tag_recv_nbx(worker_, landing.data, landing.bytes, tag, mask, &recv_params_);
  op.bytes = recv_info_.length;
  op.tag = recv_info_.sender_tag;
  if (UCS_PTR_IS_ERR(answer) && UCS_PTR_STATUS(answer) == UCS_ERR_MESSAGE_TRUNCATED) {
    // The message is consumed: that is a completion, not a refused post.
    requests_->give(*request);
    complete_later(op, Status::truncated);
    return Status::in_progress;
  }
  return posted(answer, *request, op);
}

UcxRequest* UcxWire::pending_receive(const WireOp& op) noexcept {
  if (op.request == nullptr || op.request == kDone) return nullptr;
  auto* request = static_cast<UcxRequest*>(op.request);
  return request->op == &op && request->kind == RequestKind::receive ? request : nullptr;
}

void UcxWire::cancel(WireOp& op) noexcept {
  if (UcxRequest* request = pending_receive(op)) library_.request_cancel(worker_, request);
}

/// UCX does not end a receive that matched a rendezvous announcement, whatever became of the sender. First everything
/// that the dead had still sent is taken in; what is left then has nobody who could write.
void UcxWire::abandon(WireOp& op) noexcept {
  cancel(op);
  for (int i = 0; i < kAbandonProgressMost && pending_receive(op) != nullptr; ++i) {
    if (library_.worker_progress(worker_) == 0) break;
  }
  if (UcxRequest* request = pending_receive(op)) give_up(*request);
}

/// Where the receiver fetches a long message, it does so in progress: what has matched ends here.
void UcxWire::take_back(WireOp& op) noexcept {
  cancel(op);
  if (pending_receive(op) == nullptr) return;
  const TimePoint begin = Clock::now();
  if (begin - take_back_turn_ > kTakeBackTurn) {
    take_back_turn_ = begin;
    take_back_spent_ = {};
  }
  while (pending_receive(op) != nullptr) {
    library_.worker_progress(worker_);
    if (take_back_spent_ + (Clock::now() - begin) < kTakeBackMost) continue;
    log::error(
        "wire ucx: a receive was taken back, but its message still comes after {} s: its buffer may be written to. "
        "Cure: end the transfer before its channel is closed, or keep the buffer until the runtime ends",
        kTakeBackMost.count());
    break;
  }
  take_back_spent_ += Clock::now() - begin;
}

Status UcxWire::am_send(WireEndpoint* endpoint, unsigned id, std::span<const std::byte> header, ConstBuffer payload,
                        WireOp& op) noexcept {
  Status why = check_memory(payload.data, payload.bytes, payload.kind, op);
  if (why != Status::ok) return why;
  if (id >= am_slots_.size() || header.size() > capabilities_.am_header_bytes_max ||
      (header.data() == nullptr && !header.empty())) {
    return Status::invalid_argument;
  }
  UcxEndpoint* to = checked(endpoint, why);
  if (to == nullptr) return why;
  // Towards ourselves the message arrives inside this call, so progress cannot hold it back.
  if (to->to_self && inbox_.size() >= messages_max_) return Status::limit_reached;
  UcxRequest* request = start(RequestKind::send, to, op);
  if (request == nullptr) return Status::limit_reached;
  op.bytes = payload.bytes;
  am_params_.request = request;
  am_params_.memory_type = memory_type_of(payload.kind);
  am_params_.flags =
      UCP_AM_SEND_FLAG_COPY_HEADER |
      (payload.bytes <= capabilities_.am_eager_bytes_max ? UCP_AM_SEND_FLAG_EAGER : UCP_AM_SEND_FLAG_RNDV);
  return posted(
      library_.am_send_nbx(to->handle, id, header.data(), header.size(), payload.data, payload.bytes, &am_params_),
      *request, op);
}

void UcxWire::set_am_handler(unsigned id, AmHandler handler, void* context) noexcept {
  if (id >= am_slots_.size()) return;
  am_slots_[id].handler = handler;
  am_slots_[id].context = context;
}

Status UcxWire::am_receive(AmMessage& message, Buffer landing, WireOp& op) noexcept {
  const Status why = check_memory(landing.data, landing.bytes, landing.kind, op);
  if (why != Status::ok) return why;
  if (message.data != nullptr || message.descriptor == nullptr) return Status::invalid_argument;
  op.tag = 0;
  op.bytes = message.bytes;
  if (message.bytes > landing.bytes) {
    // UCX does not check the length here and would write past the end.
    am_discard(message);
    complete_later(op, Status::truncated);
    return Status::in_progress;
  }
  UcxRequest* request = start(RequestKind::receive, nullptr, op);
  if (request == nullptr) return Status::limit_reached;
  void* descriptor = std::exchange(message.descriptor, nullptr);
  am_recv_params_.request = request;
  am_recv_params_.memory_type = memory_type_of(landing.kind);
  am_landed_bytes_ = 0;
  const ucs_status_ptr_t answer =
      library_.am_recv_data_nbx(worker_, descriptor, landing.data, landing.bytes, &am_recv_params_);
  if (UCS_PTR_IS_ERR(answer)) {
    // UCX took the descriptor in any case: the message is gone, so this is a completion.
    requests_->give(*request);
    complete_later(op, status_of(UCS_PTR_STATUS(answer)));
    return Status::in_progress;
  }
  return posted(answer, *request, op);
}

void UcxWire::am_discard(AmMessage& message) noexcept {
  if (message.data != nullptr || message.descriptor == nullptr) return;
  library_.am_data_release(worker_, std::exchange(message.descriptor, nullptr));
}

unsigned UcxWire::progress() noexcept {
  // A full inbox stops the intake: the transports fill up and hold the senders back.
  if (inbox_.size() >= messages_max_) return 1;
  return library_.worker_progress(worker_);
}

unsigned UcxWire::deliver(unsigned limit) noexcept {
  unsigned done = 0;
  // By turns, so that neither a stream of completions nor one of messages starves the other.
  while (done < limit) {
    WireOp* op = completed_.pop();
    if (op != nullptr) {
      ++done;
      op->request = nullptr;
      if (op->on_complete != nullptr) op->on_complete(*op);
    }
    InboxMessage* message = done < limit ? inbox_.pop() : nullptr;
    if (message != nullptr) {
      ++done;
      hand_over(*message);
    }
    if (op == nullptr && message == nullptr) break;
  }
  if (failures_due_) done += tell_failures();
  return done;
}

/// The handler may disconnect, but adds no endpoints.
unsigned UcxWire::tell_failures() noexcept {
  failures_due_ = false;
  unsigned told = 0;
  for (const auto& endpoint : endpoints_) {
    if (!endpoint->failed || endpoint->closed || std::exchange(endpoint->failure_told, true)) continue;
    if (failure_handler_ == nullptr) continue;
    failure_handler_(failure_context_, reinterpret_cast<WireEndpoint*>(endpoint.get()));
    ++told;
  }
  return told;
}

void UcxWire::hand_over(InboxMessage& message) noexcept {
  const AmSlot& slot = am_slots_[message.id];
  AmMessage view;
  view.header = {message.storage(), message.header_bytes};
  view.data = message.data;
  view.bytes = message.bytes;
  view.descriptor = message.data == nullptr ? message.descriptor : nullptr;
  if (slot.handler != nullptr) {
    slot.handler(slot.context, view);
  } else {
    if (!std::exchange(unhandled_reported_, true))
      log::warn("wire ucx: dropped an active message of id {}: it has no handler (said once)", message.id);
    am_discard(view);
  }
  if (message.data != nullptr && message.descriptor != nullptr) library_.am_data_release(worker_, message.descriptor);
  inbox_.give(message);
}

ucs_status_t UcxWire::arrived(AmSlot& slot, std::span<const std::byte> header, void* data, std::size_t bytes,
                              std::uint64_t attributes) noexcept {
  const bool waiting = (attributes & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  const bool may_keep = (attributes & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
  // The payload starts at a multiple of 16 behind the header. Small ones are copied: cheaper than to keep UCX's buffer,
  // of which it has few.
  const std::size_t data_at = (header.size() + 15) / 16 * 16;
  const bool keep = waiting || (may_keep && data_at + bytes > UcxInbox::kSmallBytes);
  InboxMessage* message = inbox_.take(keep ? header.size() : data_at + bytes);
  if (message == nullptr) {
    log::error(
        "wire ucx: no memory for an active message of {} bytes (id {}): it is lost, and as UCX does not say whose it "
        "was, all peers are given up",
        header.size() + bytes, slot.id);
    for (const auto& endpoint : endpoints_) fail(*endpoint);
    return UCS_OK;
  }
  message->id = slot.id;
  message->bytes = bytes;
  message->header_bytes = static_cast<std::uint32_t>(header.size());
  message->descriptor = keep ? data : nullptr;
  if (!header.empty()) std::memcpy(message->storage(), header.data(), header.size());
  if (waiting) {
    message->data = nullptr;
  } else if (keep) {
    message->data = static_cast<const std::byte*>(data);
  } else if (bytes == 0) {
    message->data = &kNothing;
  } else {
    std::memcpy(message->storage() + data_at, data, bytes);
    message->data = message->storage() + data_at;
  }
  inbox_.push(*message);
  return keep ? UCS_INPROGRESS : UCS_OK;
}

void UcxWire::on_sent(void* request, ucs_status_t status, void*) noexcept {
  auto& mine = *static_cast<UcxRequest*>(request);
  mine.wire->ended(mine, status);
}

void UcxWire::on_tag_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info, void*) noexcept {
  auto& mine = *static_cast<UcxRequest*>(request);
  if (mine.op != nullptr && (status == UCS_OK || status == UCS_ERR_MESSAGE_TRUNCATED)) {
    mine.op->bytes = info->length;
    mine.op->tag = info->sender_tag;
  }
  mine.wire->ended(mine, status);
}

void UcxWire::on_am_landed(void* request, ucs_status_t status, std::size_t bytes, void*) noexcept {
  auto& mine = *static_cast<UcxRequest*>(request);
  if (mine.op != nullptr && status == UCS_OK) mine.op->bytes = bytes;
  mine.wire->ended(mine, status);
}

ucs_status_t UcxWire::on_am_arrived(void* slot, const void* header, std::size_t header_bytes, void* data,
                                    std::size_t bytes, const ucp_am_recv_param_t* param) noexcept {
  auto& mine = *static_cast<AmSlot*>(slot);
  return mine.wire->arrived(mine, {static_cast<const std::byte*>(header), header_bytes}, data, bytes, param->recv_attr);
}

}  // namespace brant::port::ucx
