#pragma once

#include <cstddef>
#include <cstdint>

#include <ucp/api/ucp.h>

#include "port/wire.h"
#include "port/wire/ucx/ucx_operations.h"
#include "port/wire/ucx/ucx_worker.h"

namespace brant::port::ucx {

class UcxRemoteMemory;

/// Gets from host memory over transports that do not read a peer's memory by themselves (TCP): the owner's CPU is asked
/// for one piece after the other, some of them at a time, and answers each with a copy, or, once the memory is not
/// registered any more, with a refusal. UCX's own software form reads whatever address it is told, and goes on with
/// that while the memory is given back: the owner is then killed.
class UcxGets {
 public:
  /// Takes two active-message ids behind those of the atomics. Throws Error.
  UcxGets(UcxWorker& worker, UcxOperations& operations, const UcxRemoteMemory& memory);
  UcxGets(const UcxGets&) = delete;
  UcxGets& operator=(const UcxGets&) = delete;

  /// `request` ends when all has come (peer_rejected: the memory has gone), or when the peer is lost. More than 0
  /// bytes.
  Status start(UcxRequest& request, std::uint64_t address, Buffer landing) noexcept;

 private:
  struct Call;
  struct Reply;
  struct Piece;

  Status ask(UcxRequest& request) noexcept;
  void serve(const Call& call, ucp_ep_h reply_to) noexcept;
  void say_if_refused(ucs_status_ptr_t answer) const noexcept;
  void take(const Reply& reply, const std::byte* data, std::size_t bytes) noexcept;

  static ucs_status_t on_call(void* self, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                              const ucp_am_recv_param_t* param) noexcept;
  static ucs_status_t on_reply(void* self, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                               const ucp_am_recv_param_t* param) noexcept;

  UcxWorker& worker_;
  const UcxLibrary& library_;
  UcxOperations& operations_;
  const UcxRemoteMemory& memory_;
};

}  // namespace brant::port::ucx
