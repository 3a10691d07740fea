#include "port/wire/ucx/ucx_tags.h"

#include <chrono>
#include <cstdint>

#include "base/log.h"

namespace brant::port::ucx {
namespace {

/// Bound of the progress that abandon makes.
constexpr int kAbandonProgressMost = 1024;
/// Of all receives that are taken back within kTakeBackTurn together: whoever closes many towards one that was cut off
/// must not be held for the sum.
constexpr auto kTakeBackMost = std::chrono::seconds(2);
constexpr auto kTakeBackTurn = std::chrono::seconds(10);
/// Stands where UCX says how long a message is that had come before its receive.
constexpr std::size_t kNothingCame = SIZE_MAX;

}  // namespace

UcxTags::UcxTags(UcxWorker& worker, UcxOperations& operations, UcxEndpoints& endpoints) noexcept
    : worker_(worker), library_(worker.library()), operations_(operations), endpoints_(endpoints) {
  constexpr std::uint32_t kCommon =
      UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  send_params_.op_attr_mask = kCommon;
  send_params_.cb.send = &UcxOperations::on_sent;
  recv_params_.op_attr_mask = kCommon | UCP_OP_ATTR_FIELD_RECV_INFO;
  recv_params_.cb.recv = &UcxTags::on_received;
  recv_params_.recv_info.tag_info = &recv_info_;
}

Status UcxTags::send(WireEndpoint* endpoint, std::uint64_t tag, ConstBuffer source, WireOp& op) noexcept {
  Status why = operations_.check(source.data, source.bytes, source.kind, op);
  if (why != Status::ok) return why;
  UcxEndpoint* to = endpoints_.checked(endpoint, why);
  if (to == nullptr) return why;
  UcxRequest* request = operations_.start(RequestKind::send, to, op);
  if (request == nullptr) return Status::limit_reached;
  op.bytes = source.bytes;
  op.tag = tag;
  send_params_.request = request;
  send_params_.memory_type = memory_type_of(source.kind);
  return operations_.posted(library_.tag_send_nbx(to->handle, source.data, source.bytes, tag, &send_params_), *request,
                            op);
}

Status UcxTags::receive(std::uint64_t tag, std::uint64_t mask, Buffer landing, WireOp& op) noexcept {
  const Status why = operations_.check(landing.data, landing.bytes, landing.kind, op);
  if (why != Status::ok) return why;
  UcxRequest* request = operations_.start(RequestKind::receive, nullptr, op);
  if (request == nullptr) return Status::limit_reached;
  recv_params_.request = request;
  recv_params_.memory_type = memory_type_of(landing.kind);
  recv_info_ = {.sender_tag = 0, .length = kNothingCame};
  const ucs_status_ptr_t answer =
      library_.tag_recv_nbx(worker_.handle(), landing.data, landing.bytes, tag, mask, &recv_params_);
  const bool came = recv_info_.length != kNothingCame;
  op.bytes = came ? recv_info_.length : 0;
  op.tag = recv_info_.sender_tag;
  if (UCS_PTR_IS_ERR(answer) && (came || UCS_PTR_STATUS(answer) == UCS_ERR_MESSAGE_TRUNCATED)) {
    // The message is consumed (it was too long, or its bytes could not be put into the memory of a device): that is a
    // completion, not a refused post.
    operations_.give(*request);
    operations_.complete_later(op, status_of(UCS_PTR_STATUS(answer)));
    return Status::in_progress;
  }
  return operations_.posted(answer, *request, op);
}

void UcxTags::cancel(WireOp& op) noexcept {
  if (UcxRequest* request = operations_.pending_receive(op)) library_.request_cancel(worker_.handle(), request);
}

/// UCX does not end a receive that matched a rendezvous announcement, whatever became of the sender. First everything
/// that the dead had still sent is taken in; what is left then has nobody who could write.
void UcxTags::abandon(WireOp& op) noexcept {
  cancel(op);
  for (int i = 0; i < kAbandonProgressMost && operations_.pending_receive(op) != nullptr; ++i) {
    if (worker_.progress() == 0) break;
  }
  if (UcxRequest* request = operations_.pending_receive(op)) operations_.give_up(*request);
}

/// Where the receiver fetches a long message, it does so in progress: what has matched ends here.
void UcxTags::take_back(WireOp& op) noexcept {
  cancel(op);
  if (operations_.pending_receive(op) == nullptr) return;
  const TimePoint begin = Clock::now();
  if (begin - take_back_turn_ > kTakeBackTurn) {
    take_back_turn_ = begin;
    take_back_spent_ = {};
  }
  while (operations_.pending_receive(op) != nullptr) {
    worker_.progress();
    if (take_back_spent_ + (Clock::now() - begin) < kTakeBackMost) continue;
    log::error(
        "wire ucx: a receive was taken back, but its message still comes after {} s: its buffer may be written to. "
        "Cure: end the transfer before its channel is closed, or keep the buffer until the runtime ends",
        kTakeBackMost.count());
    break;
  }
  take_back_spent_ += Clock::now() - begin;
}

/// Each goes to a receive of no bytes, which nobody waits for: UCX then has done with it, and a sender that still waits
/// is told.
unsigned UcxTags::drop_unread(std::uint64_t tag, std::uint64_t mask) noexcept {
  recv_params_.memory_type = UCS_MEMORY_TYPE_HOST;
  unsigned dropped = 0;
  ucp_tag_recv_info_t found;
  while (library_.tag_probe_nb(worker_.handle(), tag, mask, 0, &found) != nullptr) {
    UcxRequest* request = operations_.start_for_nobody(RequestKind::receive, nullptr);
    if (request == nullptr) break;
    recv_params_.request = request;
    const ucs_status_ptr_t answer = library_.tag_recv_nbx(worker_.handle(), nullptr, 0, tag, mask, &recv_params_);
    operations_.posted_for_nobody(answer, *request);
    if (UCS_PTR_IS_ERR(answer) && UCS_PTR_STATUS(answer) != UCS_ERR_MESSAGE_TRUNCATED) break;  // it is still there
    ++dropped;
  }
  return dropped;
}

void UcxTags::on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info, void*) noexcept {
  auto& mine = *static_cast<UcxRequest*>(request);
  if (mine.op != nullptr && (status == UCS_OK || status == UCS_ERR_MESSAGE_TRUNCATED)) {
    mine.op->bytes = info->length;
    mine.op->tag = info->sender_tag;
  }
  mine.operations->ended(mine, status);
}

}  // namespace brant::port::ucx
