#include "port/wire/ucx/ucx_gets.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "base/log.h"
#include "brant/base/status.h"
#include "port/wire/ucx/ucx_remote_memory.h"
#include "port/wire/ucx/ucx_status.h"

namespace brant::port::ucx {
namespace {

constexpr unsigned kAskId = 66;  // behind those of the atomics
constexpr unsigned kPieceId = 67;
constexpr std::size_t kPieceBytes = 64 << 10;
/// Asked for at a time: as much as is under way on a connection that is never idle.
constexpr unsigned kPiecesMost = 16;

/// What UCX is told of a send, whose record of it is UCX's own. `sent` is given `context`, unless it is sent at once.
ucp_request_param_t params_of(unsigned flags, ucp_send_nbx_callback_t sent, void* context) noexcept {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_AM_SEND_FLAG_COPY_HEADER | UCP_AM_SEND_FLAG_EAGER | flags;
  params.cb.send = sent;
  params.user_data = context;
  return params;
}

/// Of a header alone.
ucp_request_param_t params_of(unsigned flags, const UcxLibrary& library) noexcept {
  constexpr auto kFree = [](void* request, ucs_status_t, void* of) {
    static_cast<const UcxLibrary*>(of)->request_free(request);
  };
  return params_of(flags, kFree, const_cast<UcxLibrary*>(&library));
}

}  // namespace

/// Please send `bytes` that lie at `address`.
struct UcxGets::Call {
  std::uint64_t request = 0;  ///< The asker's record, and where in the landing: both come back in the reply.
  std::uint64_t offset = 0;
  std::uint32_t generation = 0;
  std::uint32_t bytes = 0;
  std::uint64_t address = 0;
};

struct UcxGets::Reply {
  std::uint64_t request = 0;
  std::uint64_t offset = 0;
  std::uint32_t generation = 0;
  std::int32_t status = 0;
};

/// A copy of what is sent, for as long as UCX reads it.
struct UcxGets::Piece {
  explicit Piece(const UcxLibrary& of) noexcept : library(of) {}

  const UcxLibrary& library;
  std::byte bytes[kPieceBytes];
};

UcxGets::UcxGets(UcxWorker& worker, UcxOperations& operations, const UcxRemoteMemory& memory)
    : worker_(worker), library_(worker.library()), operations_(operations), memory_(memory) {
  worker_.set_handler(kAskId, &UcxGets::on_call, this, UCP_AM_FLAG_WHOLE_MSG);
  worker_.set_handler(kPieceId, &UcxGets::on_reply, this, UCP_AM_FLAG_WHOLE_MSG);
}

// The asker
// -------------------------------------------------------------------------------------------------------------------

Status UcxGets::start(UcxRequest& request, std::uint64_t address, Buffer landing) noexcept {
  request.get = {.landing = static_cast<std::byte*>(landing.data), .address = address, .bytes = landing.bytes};
  WireOp& op = *request.op;
  // Pending before the first message: towards ourselves the reply comes inside of it.
  static_cast<void>(operations_.wait_without_ucx(request));
  const Status asked = ask(request);
  if (asked == Status::ok) return Status::in_progress;
  UcxRequestList::remove(request);
  op.request = nullptr;
  operations_.give(request);
  return asked;
}

/// Asks for as much as may be under way. Not ok: that could not be sent.
Status UcxGets::ask(UcxRequest& request) noexcept {
  UcxGet& get = request.get;
  const std::uint32_t generation = request.generation;
  get.asks = true;
  while (get.asked < get.bytes && get.under_way < kPiecesMost) {
    Call call{.request = reinterpret_cast<std::uintptr_t>(&request), .offset = get.asked, .generation = generation};
    call.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(kPieceBytes, get.bytes - get.asked));
    call.address = get.address + get.asked;
    get.asked += call.bytes;
    ++get.under_way;
    const ucp_request_param_t params = params_of(UCP_AM_SEND_FLAG_REPLY, library_);
    const ucs_status_ptr_t answer =
        library_.am_send_nbx(request.endpoint->handle, kAskId, &call, sizeof call, nullptr, 0, &params);
    if (UCS_PTR_IS_ERR(answer)) return status_of(UCS_PTR_STATUS(answer));
    if (request.generation != generation) return Status::ok;  // it has ended within the call
  }
  get.asks = false;
  return Status::ok;
}

void UcxGets::take(const Reply& reply, const std::byte* data, std::size_t bytes) noexcept {
  UcxRequest* const request = operations_.find(reply.request);
  // Records are never unmapped while the wire lives; the generation tells that a reply is too late.
  const bool awaited = request != nullptr && request->generation == reply.generation &&
                       request->state == RequestState::pending && request->kind == RequestKind::get;
  if (!awaited || request->get.under_way == 0) return;
  UcxGet& get = request->get;
  --get.under_way;
  if (reply.status != 0) {
    const bool short_of_memory = reply.status == static_cast<std::int32_t>(Status::no_memory);
    return operations_.finish(*request, short_of_memory ? Status::no_memory : Status::peer_rejected);
  }
  const bool fits = reply.offset % kPieceBytes == 0 && reply.offset < get.bytes &&
                    bytes == std::min<std::uint64_t>(kPieceBytes, get.bytes - reply.offset);
  if (!fits) return operations_.finish(*request, Status::internal);
  std::memcpy(get.landing + reply.offset, data, bytes);
  get.came += bytes;
  if (get.came >= get.bytes) return operations_.finish(*request, Status::ok);
  if (get.asks) return;
  if (const Status status = ask(*request); status != Status::ok) operations_.finish(*request, status);
}

ucs_status_t UcxGets::on_reply(void* self, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                               const ucp_am_recv_param_t* param) noexcept {
  Reply reply;
  if (header_bytes != sizeof reply || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
  std::memcpy(&reply, header, sizeof reply);
  static_cast<UcxGets*>(self)->take(reply, static_cast<const std::byte*>(data), bytes);
  return UCS_OK;
}

// The owner
// -------------------------------------------------------------------------------------------------------------------

void UcxGets::serve(const Call& call, ucp_ep_h reply_to) noexcept {
  Reply reply{.request = call.request, .offset = call.offset, .generation = call.generation};
  const std::byte* const from = call.bytes <= kPieceBytes ? memory_.local_bytes(call.address, call.bytes) : nullptr;
  std::unique_ptr<Piece> piece(from == nullptr ? nullptr : new (std::nothrow) Piece(library_));
  if (piece == nullptr) {
    // It was released meanwhile, or there is no memory for the answer.
    reply.status = static_cast<std::int32_t>(from == nullptr ? Status::peer_rejected : Status::no_memory);
    const ucp_request_param_t params = params_of(0, library_);
    return say_if_refused(library_.am_send_nbx(reply_to, kPieceId, &reply, sizeof reply, nullptr, 0, &params));
  }
  std::memcpy(piece->bytes, from, call.bytes);
  constexpr auto kSent = [](void* request, ucs_status_t, void* sent) {
    const std::unique_ptr<Piece> done(static_cast<Piece*>(sent));
    done->library.request_free(request);
  };
  const ucp_request_param_t params = params_of(0, kSent, piece.get());
  const ucs_status_ptr_t answer =
      library_.am_send_nbx(reply_to, kPieceId, &reply, sizeof reply, piece->bytes, call.bytes, &params);
  if (answer != nullptr && !UCS_PTR_IS_ERR(answer)) static_cast<void>(piece.release());  // the callback's
  say_if_refused(answer);
}

void UcxGets::say_if_refused(ucs_status_ptr_t answer) const noexcept {
  if (UCS_PTR_IS_ERR(answer))
    log::debug("wire ucx: a get could not be answered: {}", library_.status_string(UCS_PTR_STATUS(answer)));
}

ucs_status_t UcxGets::on_call(void* self, const void* header, std::size_t header_bytes, void*, std::size_t,
                              const ucp_am_recv_param_t* param) noexcept {
  Call call;
  if (header_bytes != sizeof call || (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) == 0) return UCS_OK;
  std::memcpy(&call, header, sizeof call);
  static_cast<UcxGets*>(self)->serve(call, param->reply_ep);
  return UCS_OK;
}

}  // namespace brant::port::ucx
