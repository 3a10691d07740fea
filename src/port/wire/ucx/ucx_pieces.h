#pragma once

#include <cstddef>
#include <cstdint>

#include <ucp/api/ucp.h>

#include "port/wire.h"
#include "port/wire/ucx/ucx_operations.h"
#include "port/wire/ucx/ucx_worker.h"

namespace brant::port::ucx {

class UcxRemoteMemory;

/// Puts and gets between host memory over transports that do not reach a peer's memory by themselves (TCP): the owner's
/// CPU serves one piece after the other, some of them at a time, and says of each that it has, or that the memory is
/// not registered any more. UCX's own software form follows whatever address it is told, and goes on with that while
/// the memory is given back: the owner is then killed.
///
/// What the owner has under way for one peer is bounded, however much that peer asks for: at most `kUnderWayMost`
/// pieces are asked for at a time, and all that is posted takes turns with them.
class UcxPieces {
 public:
  static constexpr std::size_t kPieceBytes = 64 << 10;
  /// Towards one peer: 4 MB.
  static constexpr unsigned kUnderWayMost = 64;
  /// Larger puts are UCX's, whose form writes what it has read from the socket straight into the memory.
  static constexpr std::size_t kPutBytesMost = 16 << 10;

  /// Takes three active-message ids behind those of the atomics. Throws Error.
  UcxPieces(UcxWorker& worker, UcxOperations& operations, const UcxRemoteMemory& memory);
  UcxPieces(const UcxPieces&) = delete;
  UcxPieces& operator=(const UcxPieces&) = delete;

  /// `request` (of kind get) ends when all has come (peer_rejected: the memory has gone), or when the peer is lost.
  /// More than 0 bytes. Always in_progress.
  Status get(UcxRequest& request, std::uint64_t address, Buffer landing) noexcept;
  /// The same, of kind put: it ends when all is there, and needs no flush.
  Status put(UcxRequest& request, std::uint64_t address, ConstBuffer source) noexcept;

 private:
  struct Call;
  struct Reply;
  struct Piece;

  Status start(UcxRequest& request) noexcept;
  void ask(UcxEndpoint& endpoint) noexcept;
  Status ask_for_one(UcxRequest& request) noexcept;
  void end(UcxRequest& request, Status status) noexcept;
  Status send_copy(ucp_ep_h to, unsigned id, std::span<const std::byte> header, std::span<const std::byte> data,
                   unsigned flags) const noexcept;
  void serve_get(const Call& call, ucp_ep_h reply_to) noexcept;
  void serve_put(const Call& call, std::span<const std::byte> data, ucp_ep_h reply_to) noexcept;
  void refuse(Reply reply, Status why, ucp_ep_h reply_to) const noexcept;
  void say_if_refused(Status sent) const noexcept;
  void take(const Reply& reply, std::span<const std::byte> data) noexcept;

  static ucs_status_t on_get(void* self, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                             const ucp_am_recv_param_t* param) noexcept;
  static ucs_status_t on_put(void* self, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                             const ucp_am_recv_param_t* param) noexcept;
  static ucs_status_t on_reply(void* self, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                               const ucp_am_recv_param_t* param) noexcept;

  UcxWorker& worker_;
  const UcxLibrary& library_;
  UcxOperations& operations_;
  const UcxRemoteMemory& memory_;
};

}  // namespace brant::port::ucx
