#include "port/wire/ucx/ucx_atomics.h"

#include <cstring>
#include <span>
#include <utility>

#include "base/atomic_word.h"
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
  AtomicOp operation{};
  AtomicType type{};
  std::uint16_t unused = 0;
  std::uint64_t address = 0;
  std::uint64_t operand = 0;
  std::uint64_t expected = 0;
};
static_assert(sizeof(CallHeader) == 40, "nothing in it is left to chance");

struct ReplyHeader {
  std::uint64_t request = 0;
  std::uint32_t generation = 0;
  std::int32_t status = 0;
  std::uint64_t value = 0;
};

}  // namespace

UcxAtomics::UcxAtomics(UcxWorker& worker, UcxOperations& operations, UcxRemoteMemory& memory)
    : worker_(worker), operations_(operations), memory_(memory) {
  worker_.set_handler(kCallId, &UcxAtomics::on_call, this);
  worker_.set_handler(kReplyId, &UcxAtomics::on_reply, this);
}

Status UcxAtomics::send(UcxRequest& request, std::uint64_t address, const Atomic& what) noexcept {
  CallHeader header;
  header.request = reinterpret_cast<std::uintptr_t>(&request);
  header.generation = request.generation;
  header.address = address;
  header.operation = what.operation;
  header.type = what.type;
  header.operand = what.operand;
  header.expected = what.expected;
  request.sequence = ++request.endpoint->sequence;
  // Pending before the send: towards ourselves the reply comes inside of it.
  const Status waiting = operations_.wait_without_ucx(request);
  const Status sent = worker_.send_header(request.endpoint->handle, kCallId, std::as_bytes(std::span(&header, 1)),
                                          UCP_AM_SEND_FLAG_REPLY);
  if (sent == Status::ok) return waiting;
  UcxRequestList::remove(request);
  request.op->request = nullptr;
  operations_.give(request);
  return sent;
}

void UcxAtomics::serve(const void* header, std::size_t bytes, ucp_ep_h reply_to) noexcept {
  CallHeader call;
  if (bytes != sizeof call || reply_to == nullptr) return;
  std::memcpy(&call, header, sizeof call);
  ReplyHeader reply;
  reply.request = call.request;
  reply.generation = call.generation;
  const Atomic what{call.operation, call.type, call.operand, call.expected};
  void* const word = what.exists() ? memory_.local_word(call.address, what.bytes()) : nullptr;
  if (word != nullptr) {
    reply.value = perform_atomic(word, what);
  } else {
    reply.status = static_cast<std::int32_t>(Status::peer_rejected);  // the segment was released meanwhile
  }
  const Status sent = worker_.send_header(reply_to, kReplyId, std::as_bytes(std::span(&reply, 1)), 0);
  if (sent != Status::ok) log::debug("wire ucx: an atomic operation could not be answered: {}", status_text(sent));
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
