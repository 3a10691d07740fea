#include "port/wire/ucx/ucx_operations.h"

#include <utility>

namespace brant::port::ucx {
namespace {

/// Stands in WireOp::request between completion and `deliver`, so that a second post of the op is noticed.
char g_done_marker = 0;
void* const kDone = &g_done_marker;

}  // namespace

Status UcxOperations::posted(ucs_status_ptr_t answer, UcxRequest& request, WireOp& op) noexcept {
  if (answer == nullptr) {
    op.status = Status::ok;
    requests_.give(request);
    return Status::ok;
  }
  if (UCS_PTR_IS_ERR(answer)) {
    const Status status = status_of(UCS_PTR_STATUS(answer));
    requests_.give(request);
    return status;
  }
  if (request.state == RequestState::ended) {
    complete_later(op, request.ended_status);
    requests_.give(request);
    return Status::in_progress;
  }
  request.ucx_holds = true;
  return wait_without_ucx(request);
}

void UcxOperations::posted_for_nobody(ucs_status_ptr_t answer, UcxRequest& request) noexcept {
  const bool held = answer != nullptr && !UCS_PTR_IS_ERR(answer) && request.state != RequestState::ended;
  if (!held) return requests_.give(request);
  request.ucx_holds = true;
  request.state = RequestState::pending;
}

Status UcxOperations::wait_without_ucx(UcxRequest& request) noexcept {
  request.state = RequestState::pending;
  if (request.endpoint != nullptr) request.endpoint->pending.add(request);
  request.op->request = &request;
  request.op->status = Status::in_progress;
  return Status::in_progress;
}

void UcxOperations::complete_later(WireOp& op, Status status) noexcept {
  op.status = status;
  op.request = kDone;
  done_.push(op);
}

void UcxOperations::ended(UcxRequest& request, ucs_status_t ucx_status) noexcept {
  Status status = status_of(ucx_status);
  if (request.state == RequestState::posting) {
    request.state = RequestState::ended;
    request.ended_status = status;
    return;
  }
  request.ucx_holds = false;
  if (status != Status::ok && request.endpoint != nullptr && request.endpoint->closed) status = Status::canceled;
  if (request.kind == RequestKind::flush && status == Status::ok && request.op != nullptr && waits_for_owner(request))
    return;
  finish(request, status);
}

void UcxOperations::finish(UcxRequest& request, Status status) noexcept {
  take_out_of_lists(request);
  if (request.op != nullptr) complete_later(*request.op, status);
  requests_.give(request);
}

void UcxOperations::give_up(UcxRequest& request) noexcept {
  take_out_of_lists(request);
  if (WireOp* op = std::exchange(request.op, nullptr); op != nullptr) complete_later(*op, Status::canceled);
  if (!request.ucx_holds) requests_.give(request);
}

UcxRequest* UcxOperations::pending_receive(const WireOp& op) const noexcept {
  if (op.request == nullptr || op.request == kDone) return nullptr;
  auto* request = static_cast<UcxRequest*>(op.request);
  return request->op == &op && request->kind == RequestKind::receive ? request : nullptr;
}

bool UcxOperations::waits_for_owner(const UcxRequest& flush) noexcept {
  for (const UcxRequest* request = flush.endpoint->pending.first; request != nullptr; request = request->next) {
    const bool by_owner = request->kind == RequestKind::atomic || request->kind == RequestKind::put;
    if (by_owner && request->sequence < flush.sequence) return true;
  }
  return false;
}

void UcxOperations::settle_flushes(UcxEndpoint& endpoint) noexcept {
  UcxRequest* following = nullptr;
  for (UcxRequest* request = endpoint.pending.first; request != nullptr; request = following) {
    following = request->next;
    if (request->kind == RequestKind::flush && !request->ucx_holds && !waits_for_owner(*request))
      finish(*request, Status::ok);
  }
}

void UcxOperations::take_out_of_lists(UcxRequest& request) noexcept {
  UcxRequestList::remove(request);
  if (request.ask_hook.linked()) request.endpoint->to_ask.remove(request);
}

void UcxOperations::lose(UcxEndpoint& endpoint) noexcept {
  UcxRequest* following = nullptr;
  for (UcxRequest* request = endpoint.pending.first; request != nullptr; request = following) {
    following = request->next;
    if (!request->ucx_holds) finish(*request, Status::peer_lost);
  }
}

void UcxOperations::on_sent(void* request, ucs_status_t status, void*) noexcept {
  auto& mine = *static_cast<UcxRequest*>(request);
  mine.operations->ended(mine, status);
}

}  // namespace brant::port::ucx
