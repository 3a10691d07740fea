#include "port/wire/ucx/ucx_messages.h"

#include <cstring>
#include <utility>

#include "base/log.h"
#include "port/wire/ucx/ucx_status.h"

namespace brant::port::ucx {
namespace {

/// Where the payload of an empty message lies: `data` is null only for payloads that wait.
constexpr std::byte kNothing{};

}  // namespace

UcxMessages::UcxMessages(UcxWorker& worker, UcxOperations& operations, UcxEndpoints& endpoints,
                         const WireCapabilities& capabilities, std::size_t messages_max)
    : worker_(worker),
      library_(worker.library()),
      operations_(operations),
      endpoints_(endpoints),
      capabilities_(capabilities),
      messages_max_(messages_max) {
  constexpr std::uint32_t kCommon =
      UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  send_params_.op_attr_mask = kCommon | UCP_OP_ATTR_FIELD_FLAGS;
  send_params_.cb.send = &UcxOperations::on_sent;
  recv_params_.op_attr_mask = kCommon | UCP_OP_ATTR_FIELD_RECV_INFO;
  recv_params_.cb.recv_am = &UcxMessages::on_landed;
  recv_params_.recv_info.length = &landed_bytes_;
  register_slots();
}

/// UCX gets all ids at once: a message that comes before its handler was set then waits in the inbox instead of being
/// dropped by UCX.
void UcxMessages::register_slots() {
  for (unsigned id = 0; id < slots_.size(); ++id) {
    slots_[id].messages = this;
    slots_[id].id = id;
    worker_.set_handler(id, &UcxMessages::on_arrived, &slots_[id], UCP_AM_FLAG_WHOLE_MSG);
  }
}

Status UcxMessages::send(WireEndpoint* endpoint, unsigned id, std::span<const std::byte> header, ConstBuffer payload,
                         WireOp& op) noexcept {
  Status why = operations_.check(payload.data, payload.bytes, payload.kind, op);
  if (why != Status::ok) return why;
  if (id >= slots_.size() || header.size() > capabilities_.am_header_bytes_max ||
      (header.data() == nullptr && !header.empty())) {
    return Status::invalid_argument;
  }
  UcxEndpoint* to = endpoints_.checked(endpoint, why);
  if (to == nullptr) return why;
  // Towards ourselves the message arrives inside this call, so progress cannot hold it back.
  if (to->to_self && full()) return Status::limit_reached;
  UcxRequest* request = operations_.start(RequestKind::send, to, op);
  if (request == nullptr) return Status::limit_reached;
  op.bytes = payload.bytes;
  send_params_.request = request;
  send_params_.memory_type = memory_type_of(payload.kind);
  send_params_.flags =
      UCP_AM_SEND_FLAG_COPY_HEADER |
      (payload.bytes <= capabilities_.am_eager_bytes_max ? UCP_AM_SEND_FLAG_EAGER : UCP_AM_SEND_FLAG_RNDV);
  return operations_.posted(
      library_.am_send_nbx(to->handle, id, header.data(), header.size(), payload.data, payload.bytes, &send_params_),
      *request, op);
}

void UcxMessages::set_handler(unsigned id, AmHandler handler, void* context) noexcept {
  if (id >= slots_.size()) return;
  slots_[id].handler = handler;
  slots_[id].context = context;
}

Status UcxMessages::receive(AmMessage& message, Buffer landing, WireOp& op) noexcept {
  const Status why = operations_.check(landing.data, landing.bytes, landing.kind, op);
  if (why != Status::ok) return why;
  if (message.data != nullptr || message.descriptor == nullptr) return Status::invalid_argument;
  op.tag = 0;
  op.bytes = message.bytes;
  if (message.bytes > landing.bytes) {
    // UCX does not check the length here and would write past the end.
    discard(message);
    operations_.complete_later(op, Status::truncated);
    return Status::in_progress;
  }
  UcxRequest* request = operations_.start(RequestKind::receive, nullptr, op);
  if (request == nullptr) return Status::limit_reached;
  void* descriptor = std::exchange(message.descriptor, nullptr);
  recv_params_.request = request;
  recv_params_.memory_type = memory_type_of(landing.kind);
  landed_bytes_ = 0;
  ucs_status_ptr_t answer =
      library_.am_recv_data_nbx(worker_.handle(), descriptor, landing.data, landing.bytes, &recv_params_);
  if (UCS_PTR_IS_ERR(answer)) {
    // UCX took the descriptor in any case: the message is gone, so this is a completion.
    operations_.give(*request);
    operations_.complete_later(op, status_of(UCS_PTR_STATUS(answer)));
    return Status::in_progress;
  }
  return operations_.posted(answer, *request, op);
}

void UcxMessages::discard(AmMessage& message) noexcept {
  if (message.data != nullptr || message.descriptor == nullptr) return;
  library_.am_data_release(worker_.handle(), std::exchange(message.descriptor, nullptr));
}

void UcxMessages::hand_over(InboxMessage& message) noexcept {
  const Slot& slot = slots_[message.id];
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
    discard(view);
  }
  if (message.data != nullptr && message.descriptor != nullptr)
    library_.am_data_release(worker_.handle(), message.descriptor);
  inbox_.give(message);
}

ucs_status_t UcxMessages::arrived(Slot& slot, std::span<const std::byte> header, void* data, std::size_t bytes,
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
    endpoints_.fail_all();
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

void UcxMessages::on_landed(void* request, ucs_status_t status, std::size_t bytes, void*) noexcept {
  auto& mine = *static_cast<UcxRequest*>(request);
  if (mine.op != nullptr && status == UCS_OK) mine.op->bytes = bytes;
  mine.operations->ended(mine, status);
}

ucs_status_t UcxMessages::on_arrived(void* slot, const void* header, std::size_t header_bytes, void* data,
                                     std::size_t bytes, const ucp_am_recv_param_t* param) noexcept {
  auto& mine = *static_cast<Slot*>(slot);
  return mine.messages->arrived(mine, {static_cast<const std::byte*>(header), header_bytes}, data, bytes,
                                param->recv_attr);
}

void UcxMessages::drop_arrived() noexcept {
  while (InboxMessage* message = inbox_.pop()) {
    if (message->descriptor != nullptr) library_.am_data_release(worker_.handle(), message->descriptor);
    inbox_.give(*message);
  }
}

}  // namespace brant::port::ucx
