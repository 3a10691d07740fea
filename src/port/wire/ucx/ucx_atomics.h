#pragma once

#include <cstdint>

#include <ucp/api/ucp.h>

#include "port/wire.h"
#include "port/wire/ucx/ucx_operations.h"
#include "port/wire/ucx/ucx_worker.h"

namespace brant::port::ucx {

class UcxRemoteMemory;

/// Atomics on memory this process cannot map: a small active message to the owner, whose CPU performs them in its
/// progress and answers. UCX's own ones are not used: its software form refuses endpoints that report failures, and
/// hardware forms are not atomic towards the CPU, while mapped segments are worked on by CPUs. So all parties use the
/// same instruction and agree.
class UcxAtomics {
 public:
  /// Takes two active-message ids behind those of the caller. Throws Error.
  UcxAtomics(UcxWorker& worker, UcxOperations& operations, UcxRemoteMemory& memory);
  UcxAtomics(const UcxAtomics&) = delete;
  UcxAtomics& operator=(const UcxAtomics&) = delete;

  /// Sends the call; `request` ends with the reply, or when the peer is lost.
  Status send(UcxRequest& request, std::uint64_t address, const Atomic& what) noexcept;

 private:
  void serve(const void* header, std::size_t bytes, ucp_ep_h reply_to) noexcept;
  void answered(const void* header, std::size_t bytes) noexcept;

  static ucs_status_t on_call(void* self, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                              const ucp_am_recv_param_t* param) noexcept;
  static ucs_status_t on_reply(void* self, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                               const ucp_am_recv_param_t* param) noexcept;

  UcxWorker& worker_;
  UcxOperations& operations_;
  UcxRemoteMemory& memory_;
  bool stranger_told_ = false;  ///< Of answers to operations that there never were.
};

}  // namespace brant::port::ucx
