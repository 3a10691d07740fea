#pragma once

#include <cstddef>
#include <cstdint>

#include <ucp/api/ucp.h>

#include "port/wire.h"
#include "port/wire/ucx/ucx_endpoint.h"
#include "port/wire/ucx/ucx_requests.h"
#include "port/wire/ucx/ucx_status.h"
#include "port/wire/ucx/ucx_worker.h"

namespace brant::port::ucx {

/// The operations under way, and those that are done and wait for `deliver`. UCX's callbacks end here: they only put
/// what happened on a list.
class UcxOperations {
 public:
  UcxOperations(const UcxWorker& worker, const WireCapabilities& capabilities, std::size_t requests_max) noexcept
      : capabilities_(capabilities), requests_(*this, worker.request_bytes(), requests_max) {}
  UcxOperations(const UcxOperations&) = delete;
  UcxOperations& operator=(const UcxOperations&) = delete;

  /// Whether an operation may be posted with this memory.
  [[nodiscard]] Status check(const void* data, std::size_t bytes, MemoryKind kind, const WireOp& op) const noexcept {
    if (op.request != nullptr) return Status::invalid_argument;  // still pending, or not delivered yet
    if (bytes == 0) return Status::ok;
    if (data == nullptr || reinterpret_cast<std::uintptr_t>(data) + bytes < bytes) return Status::invalid_argument;
    return capabilities_.takes(kind) ? Status::ok : Status::wrong_kind;
  }

  [[nodiscard]] bool takes(MemoryKind kind) const noexcept { return capabilities_.takes(kind); }

  /// Null when there is no room for more.
  UcxRequest* start(RequestKind kind, UcxEndpoint* endpoint, WireOp& op) noexcept {
    UcxRequest* request = start_for_nobody(kind, endpoint);
    if (request != nullptr) request->op = &op;
    return request;
  }
  /// One that nobody waits for.
  UcxRequest* start_for_nobody(RequestKind kind, UcxEndpoint* endpoint) noexcept {
    UcxRequest* request = requests_.take();
    if (request == nullptr) return nullptr;
    request->endpoint = endpoint;
    request->kind = kind;
    request->state = RequestState::posting;
    return request;
  }
  /// What UCX answered to a post becomes what the wire answers.
  Status posted(ucs_status_ptr_t answer, UcxRequest& request, WireOp& op) noexcept;
  /// As `posted`, of one that nobody waits for.
  void posted_for_nobody(ucs_status_ptr_t answer, UcxRequest& request) noexcept;
  /// Puts a request that UCX does not hold among the pending ones of its endpoint.
  Status wait_without_ucx(UcxRequest& request) noexcept;
  /// For one that was refused, or has consumed its message within the post.
  void give(UcxRequest& request) noexcept { requests_.give(request); }
  /// Ends a request of which UCX knows nothing (any more).
  void finish(UcxRequest& request, Status status) noexcept;
  /// The caller gets his op back; a late callback of UCX will find only our own record.
  void give_up(UcxRequest& request) noexcept;
  void complete_later(WireOp& op, Status status) noexcept;

  /// The request at an address that a peer says, or null.
  [[nodiscard]] UcxRequest* find(std::uint64_t address) const noexcept { return requests_.find(address); }
  /// The request of a receive that has not ended, or null.
  [[nodiscard]] UcxRequest* pending_receive(const WireOp& op) const noexcept;
  /// Is something pending that was posted before this flush on its endpoint, and that the owner's CPU does?
  [[nodiscard]] static bool waits_for_owner(const UcxRequest& flush) noexcept;
  /// Something has ended for which flushes may have waited: those end that UCX has done with.
  void settle_flushes(UcxEndpoint& endpoint) noexcept;
  /// The peer is gone: what waits for an answer of it alone ends.
  void lose(UcxEndpoint& endpoint) noexcept;

  [[nodiscard]] bool any_done() const noexcept { return !done_.empty(); }
  /// Tells the owner of one operation that is done. False: there is none.
  bool deliver_one() noexcept {
    WireOp* op = done_.pop();
    if (op == nullptr) return false;
    op->request = nullptr;
    if (op->on_complete != nullptr) op->on_complete(*op);
    return true;
  }

  /// From here on no callback touches an op of a caller. Receives are withdrawn by `cancel`.
  template <typename Cancel>
  void forget_ops(Cancel&& cancel) noexcept {
    requests_.for_each_pending([&](UcxRequest& request) {
      request.op = nullptr;
      if (request.kind == RequestKind::receive) cancel(request);
    });
  }

  /// UCX has done with the request.
  void ended(UcxRequest& request, ucs_status_t status) noexcept;
  /// The callback of all that is sent, put, got or flushed.
  static void on_sent(void* request, ucs_status_t status, void* context) noexcept;

 private:
  static void take_out_of_lists(UcxRequest& request) noexcept;

  const WireCapabilities& capabilities_;
  UcxRequestPool requests_;
  WireOpList done_;
};

}  // namespace brant::port::ucx
