#include "port/wire/ucx/ucx_atomics.h"

#include <atomic>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "brant/base/status.h"
#include "port/wire/ucx/ucx_remote_memory.h"
#include "port/wire/ucx/ucx_status.h"

namespace brant::port::ucx {
namespace {

constexpr unsigned kCallId = 64;  // the caller's ids end at 63
constexpr unsigned kReplyId = 65;

struct CallHeader {
  std::uint64_t request = 0;  ///< The asker's record; comes back in the reply.
  std::uint32_t generation = 0;
  std::uint32_t operation = 0;
  std::uint64_t address = 0;
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;
};

struct ReplyHeader {
  std::uint64_t request = 0;
  std::uint32_t generation = 0;
  std::int32_t status = 0;
  std::uint64_t value = 0;
};

void free_request(const UcxLibrary& library, void* request) noexcept { library.request_free(request); }

}  // namespace

std::uint64_t perform_atomic(std::uint64_t* word, AtomicOp operation, std::uint64_t operand,
                             std::uint64_t compare) noexcept {
  const std::atomic_ref<std::uint64_t> value(*word);
  switch (operation) {
    case AtomicOp::fetch_add: return value.fetch_add(operand);
    case AtomicOp::swap: return value.exchange(operand);
    default: value.compare_exchange_strong(compare, operand); return compare;
  }
}

UcxAtomics::UcxAtomics(UcxWorker& worker, UcxOperations& operations, UcxRemoteMemory& memory)
    : worker_(worker), library_(worker.library()), operations_(operations), memory_(memory) {
  worker_.set_handler(kCallId, &UcxAtomics::on_call, this);
  worker_.set_handler(kReplyId, &UcxAtomics::on_reply, this);
}

/// The header is everything, and UCX keeps its own record of the send: ours ends with the reply.
ucs_status_ptr_t UcxAtomics::post(ucp_ep_h to, unsigned id, const void* header, std::size_t bytes,
                                  bool with_reply) const noexcept {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_AM_SEND_FLAG_COPY_HEADER | UCP_AM_SEND_FLAG_EAGER;
  if (with_reply) params.flags |= UCP_AM_SEND_FLAG_REPLY;
  params.user_data = const_cast<UcxLibrary*>(&library_);
  params.cb.send = [](void* request, ucs_status_t, void* library) {
    free_request(*static_cast<const UcxLibrary*>(library), request);
  };
  return library_.am_send_nbx(to, id, header, bytes, nullptr, 0, &params);
}

Status UcxAtomics::send(UcxRequest& request, const AtomicCall& call) noexcept {
  CallHeader header;
  header.request = reinterpret_cast<std::uintptr_t>(&request);
  header.generation = request.generation;
  header.operation = static_cast<std::uint32_t>(call.operation);
  header.address = call.address;
  header.operand = call.operand;
  header.compare = call.compare;
  request.sequence = ++request.endpoint->sequence;
  // Pending before the send: towards ourselves the reply comes inside of it.
  const Status waiting = operations_.wait_without_ucx(request);
  const ucs_status_ptr_t answer = post(request.endpoint->handle, kCallId, &header, sizeof header, true);
  if (!UCS_PTR_IS_ERR(answer)) return waiting;
  UcxRequestList::remove(request);
  request.op->request = nullptr;
  operations_.give(request);
  return status_of(UCS_PTR_STATUS(answer));
}

void UcxAtomics::serve(const void* header, std::size_t bytes, ucp_ep_h reply_to) noexcept {
  CallHeader call;
  if (bytes != sizeof call || reply_to == nullptr) return;
  std::memcpy(&call, header, sizeof call);
  ReplyHeader reply;
  reply.request = call.request;
  reply.generation = call.generation;
  std::uint64_t* word =
      call.operation <= static_cast<std::uint32_t>(AtomicOp::compare_swap) ? memory_.local_word(call.address) : nullptr;
  if (word != nullptr) {
    reply.value = perform_atomic(word, static_cast<AtomicOp>(call.operation), call.operand, call.compare);
  } else {
    reply.status = static_cast<std::int32_t>(Status::peer_rejected);  // the segment was released meanwhile
  }
  const ucs_status_ptr_t answer = post(reply_to, kReplyId, &reply, sizeof reply, false);
  if (UCS_PTR_IS_ERR(answer))
    log::debug("wire ucx: an atomic operation could not be answered: {}",
               library_.status_string(UCS_PTR_STATUS(answer)));
}

void UcxAtomics::answered(const void* header, std::size_t bytes) noexcept {
  ReplyHeader reply;
  if (bytes != sizeof reply) return;
  std::memcpy(&reply, header, sizeof reply);
  UcxRequest* request = operations_.find(reply.request);
  if (request == nullptr) {
    if (!std::exchange(stranger_told_, true))
      log::error("wire ucx: an answer to an atomic operation that there never was: dropped, as all such are");
    return;
  }
  // Records are never unmapped while the wire lives, so an old reply finds its own; the generation tells that it is too
  // late.
  if (request->generation != reply.generation || request->state != RequestState::pending ||
      request->kind != RequestKind::atomic)
    return;
  if (reply.status == 0) *request->result = reply.value;
  UcxEndpoint& endpoint = *request->endpoint;
  operations_.finish(*request, reply.status == 0 ? Status::ok : Status::peer_rejected);
  operations_.settle_flushes(endpoint);
}

ucs_status_t UcxAtomics::on_call(void* self, const void* header, std::size_t header_bytes, void*, std::size_t,
                                 const ucp_am_recv_param_t* param) noexcept {
  const bool can_reply = (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0;
  static_cast<UcxAtomics*>(self)->serve(header, header_bytes, can_reply ? param->reply_ep : nullptr);
  return UCS_OK;
}

ucs_status_t UcxAtomics::on_reply(void* self, const void* header, std::size_t header_bytes, void*, std::size_t,
                                  const ucp_am_recv_param_t*) noexcept {
  static_cast<UcxAtomics*>(self)->answered(header, header_bytes);
  return UCS_OK;
}

}  // namespace brant::port::ucx
