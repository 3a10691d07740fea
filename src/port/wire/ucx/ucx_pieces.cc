#include "port/wire/ucx/ucx_pieces.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "base/log.h"
#include "brant/base/status.h"
#include "port/wire/ucx/ucx_remote_memory.h"
#include "port/wire/ucx/ucx_status.h"

namespace brant::port::ucx {
namespace {

constexpr unsigned kPieceGetId = 66;  // behind those of the atomics
constexpr unsigned kPieceSaidId = 67;
constexpr unsigned kPiecePutId = 68;
/// Of one operation, asked for at a time: as much as is under way on a connection that is never idle.
constexpr unsigned kPiecesOfOneMost = 16;

template <typename Header>
std::span<const std::byte> bytes_of(const Header& header) noexcept {
  return std::as_bytes(std::span(&header, 1));
}

}  // namespace

/// Please send `bytes` that lie at `address`, or put those that come with it there.
struct UcxPieces::Call {
  std::uint64_t request = 0;  ///< The asker's record, and where in its memory: both come back in the reply.
  std::uint64_t offset = 0;
  std::uint32_t generation = 0;
  std::uint32_t bytes = 0;
  std::uint64_t address = 0;
};

struct UcxPieces::Reply {
  explicit Reply() = default;
  explicit Reply(const Call& call) noexcept : request(call.request), offset(call.offset), generation(call.generation) {}

  std::uint64_t request = 0;
  std::uint64_t offset = 0;
  std::uint32_t generation = 0;
  std::int32_t status = 0;
};

/// A copy of what is sent, for as long as UCX reads it: behind this record.
struct UcxPieces::Piece {
  struct Free {
    void operator()(Piece* piece) const noexcept { ::operator delete(piece); }
  };
  using Owner = std::unique_ptr<Piece, Free>;

  explicit Piece(const UcxLibrary& of) noexcept : library(of) {}
  static Owner make(const UcxLibrary& library, std::span<const std::byte> data) noexcept {
    void* const memory = ::operator new(sizeof(Piece) + data.size(), std::nothrow);
    if (memory == nullptr) return nullptr;
    Owner piece(::new (memory) Piece(library));
    std::memcpy(piece->bytes(), data.data(), data.size());
    return piece;
  }
  std::byte* bytes() noexcept { return reinterpret_cast<std::byte*>(this + 1); }

  const UcxLibrary& library;
};

UcxPieces::UcxPieces(UcxWorker& worker, UcxOperations& operations, const UcxRemoteMemory& memory)
    : worker_(worker), library_(worker.library()), operations_(operations), memory_(memory) {
  worker_.set_handler(kPieceGetId, &UcxPieces::on_get, this, UCP_AM_FLAG_WHOLE_MSG);
  worker_.set_handler(kPiecePutId, &UcxPieces::on_put, this, UCP_AM_FLAG_WHOLE_MSG);
  worker_.set_handler(kPieceSaidId, &UcxPieces::on_reply, this, UCP_AM_FLAG_WHOLE_MSG);
}

/// `data` is free on return. Not ok: nothing was sent.
Status UcxPieces::send_copy(ucp_ep_h to, unsigned id, std::span<const std::byte> header,
                            std::span<const std::byte> data, unsigned flags) const noexcept {
  Piece::Owner piece = Piece::make(library_, data);
  if (piece == nullptr) return Status::no_memory;
  constexpr auto kSent = [](void* request, ucs_status_t, void* sent) {
    const Piece::Owner done(static_cast<Piece*>(sent));
    done->library.request_free(request);
  };
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_AM_SEND_FLAG_COPY_HEADER | UCP_AM_SEND_FLAG_EAGER | flags;
  params.cb.send = kSent;
  params.user_data = piece.get();
  const ucs_status_ptr_t answer =
      library_.am_send_nbx(to, id, header.data(), header.size(), piece->bytes(), data.size(), &params);
  if (UCS_PTR_IS_ERR(answer)) return status_of(UCS_PTR_STATUS(answer));
  if (answer != nullptr) static_cast<void>(piece.release());  // the callback's
  return Status::ok;
}

// The asker
// -------------------------------------------------------------------------------------------------------------------

Status UcxPieces::get(UcxRequest& request, std::uint64_t address, Buffer landing) noexcept {
  request.pieces = {.here = static_cast<std::byte*>(landing.data), .address = address, .bytes = landing.bytes};
  return start(request);
}

Status UcxPieces::put(UcxRequest& request, std::uint64_t address, ConstBuffer source) noexcept {
  auto* const here = static_cast<std::byte*>(const_cast<void*>(source.data));  // only read from
  request.pieces = {.here = here, .address = address, .bytes = source.bytes};
  request.sequence = ++request.endpoint->sequence;
  return start(request);
}

Status UcxPieces::start(UcxRequest& request) noexcept {
  UcxEndpoint& endpoint = *request.endpoint;
  // Pending before the first message: towards ourselves the reply comes inside of it.
  const Status waiting = operations_.wait_without_ucx(request);
  endpoint.to_ask.push_back(request);
  ask(endpoint);
  return waiting;
}

/// Asks for as much as may be under way, for one operation after the other.
void UcxPieces::ask(UcxEndpoint& endpoint) noexcept {
  if (std::exchange(endpoint.asks, true)) return;  // inside of the loop below
  while (endpoint.pieces_under_way < kUnderWayMost) {
    UcxRequest* const request = endpoint.to_ask.pop_front();
    if (request == nullptr) break;
    const std::uint32_t generation = request->generation;
    const Status status = ask_for_one(*request);
    if (request->generation != generation) continue;  // it has ended within the call
    const UcxInPieces& pieces = request->pieces;
    if (status != Status::ok) {
      end(*request, status);
    } else if (pieces.asked < pieces.bytes && pieces.under_way < kPiecesOfOneMost && !request->ask_hook.linked()) {
      endpoint.to_ask.push_back(*request);
    }
  }
  endpoint.asks = false;
}

Status UcxPieces::ask_for_one(UcxRequest& request) noexcept {
  UcxInPieces& pieces = request.pieces;
  UcxEndpoint& endpoint = *request.endpoint;
  Call call{.request = reinterpret_cast<std::uintptr_t>(&request), .offset = pieces.asked};
  call.generation = request.generation;
  call.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(kPieceBytes, pieces.bytes - pieces.asked));
  call.address = pieces.address + pieces.asked;
  const std::byte* const here = pieces.here + pieces.asked;
  pieces.asked += call.bytes;
  ++pieces.under_way;
  ++endpoint.pieces_under_way;
  if (request.kind == RequestKind::put)
    return send_copy(endpoint.handle, kPiecePutId, bytes_of(call), {here, call.bytes}, UCP_AM_SEND_FLAG_REPLY);
  return worker_.send_header(endpoint.handle, kPieceGetId, bytes_of(call), UCP_AM_SEND_FLAG_REPLY);
}

void UcxPieces::take(const Reply& reply, std::span<const std::byte> data) noexcept {
  UcxRequest* const request = operations_.find(reply.request);
  // Records are never unmapped while the wire lives; the generation tells that a reply is too late.
  const bool awaited = request != nullptr && request->generation == reply.generation &&
                       request->state == RequestState::pending &&
                       (request->kind == RequestKind::get || request->kind == RequestKind::put);
  if (!awaited || request->pieces.under_way == 0) return;
  UcxInPieces& pieces = request->pieces;
  UcxEndpoint& endpoint = *request->endpoint;
  --pieces.under_way;
  --endpoint.pieces_under_way;
  const bool in_place = reply.offset % kPieceBytes == 0 && reply.offset < pieces.bytes;
  const std::uint64_t bytes = in_place ? std::min<std::uint64_t>(kPieceBytes, pieces.bytes - reply.offset) : 0;
  const bool is_get = request->kind == RequestKind::get;
  if (reply.status != 0) {
    const bool short_of_memory = reply.status == static_cast<std::int32_t>(Status::no_memory);
    end(*request, short_of_memory ? Status::no_memory : Status::peer_rejected);
  } else if (!in_place || data.size() != (is_get ? bytes : 0)) {
    end(*request, Status::internal);
  } else {
    if (is_get) std::memcpy(pieces.here + reply.offset, data.data(), data.size());
    pieces.done += bytes;
    if (pieces.done >= pieces.bytes) {
      end(*request, Status::ok);
    } else if (pieces.asked < pieces.bytes && !request->ask_hook.linked()) {
      endpoint.to_ask.push_back(*request);
    }
  }
  ask(endpoint);
}

/// The owner has done with what is still under way of it by the time that it sees what is asked for next.
void UcxPieces::end(UcxRequest& request, Status status) noexcept {
  UcxEndpoint& endpoint = *request.endpoint;
  endpoint.pieces_under_way -= request.pieces.under_way;
  const bool is_put = request.kind == RequestKind::put;
  if (is_put && request.op != nullptr) request.op->visible = status == Status::ok;
  operations_.finish(request, status);
  if (is_put) operations_.settle_flushes(endpoint);
}

ucs_status_t UcxPieces::on_reply(void* self, const void* header, std::size_t header_bytes, void* data,
                                 std::size_t bytes, const ucp_am_recv_param_t* param) noexcept {
  Reply reply;
  if (header_bytes != sizeof reply || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
  std::memcpy(&reply, header, sizeof reply);
  static_cast<UcxPieces*>(self)->take(reply, {static_cast<const std::byte*>(data), bytes});
  return UCS_OK;
}

// The owner
// -------------------------------------------------------------------------------------------------------------------

void UcxPieces::serve_get(const Call& call, ucp_ep_h reply_to) noexcept {
  const Reply reply(call);
  const std::byte* const from = call.bytes <= kPieceBytes ? memory_.local_bytes(call.address, call.bytes) : nullptr;
  if (from == nullptr) return refuse(reply, Status::peer_rejected, reply_to);  // it was released meanwhile
  const Status sent = send_copy(reply_to, kPieceSaidId, bytes_of(reply), {from, call.bytes}, 0);
  if (sent == Status::no_memory) return refuse(reply, sent, reply_to);
  say_if_refused(sent);
}

void UcxPieces::serve_put(const Call& call, std::span<const std::byte> data, ucp_ep_h reply_to) noexcept {
  const Reply reply(call);
  std::byte* const to = call.bytes == data.size() ? memory_.local_bytes(call.address, call.bytes) : nullptr;
  if (to == nullptr) return refuse(reply, Status::peer_rejected, reply_to);
  std::memcpy(to, data.data(), data.size());
  say_if_refused(worker_.send_header(reply_to, kPieceSaidId, bytes_of(reply), 0));
}

void UcxPieces::refuse(Reply reply, Status why, ucp_ep_h reply_to) const noexcept {
  reply.status = static_cast<std::int32_t>(why);
  say_if_refused(worker_.send_header(reply_to, kPieceSaidId, bytes_of(reply), 0));
}

void UcxPieces::say_if_refused(Status sent) const noexcept {
  if (sent != Status::ok) log::debug("wire ucx: a put or get could not be answered: {}", status_text(sent));
}

ucs_status_t UcxPieces::on_get(void* self, const void* header, std::size_t header_bytes, void*, std::size_t,
                               const ucp_am_recv_param_t* param) noexcept {
  Call call;
  if (header_bytes != sizeof call || (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) == 0) return UCS_OK;
  std::memcpy(&call, header, sizeof call);
  static_cast<UcxPieces*>(self)->serve_get(call, param->reply_ep);
  return UCS_OK;
}

ucs_status_t UcxPieces::on_put(void* self, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                               const ucp_am_recv_param_t* param) noexcept {
  Call call;
  const bool whole = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
  if (header_bytes != sizeof call || !whole || (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) == 0) return UCS_OK;
  std::memcpy(&call, header, sizeof call);
  static_cast<UcxPieces*>(self)->serve_put(call, {static_cast<const std::byte*>(data), bytes}, param->reply_ep);
  return UCS_OK;
}

}  // namespace brant::port::ucx
