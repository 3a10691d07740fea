#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <ucp/api/ucp.h>

#include "port/wire.h"
#include "port/wire/ucx/open.h"
#include "port/wire/ucx/ucx_library.h"

namespace brant::port::ucx {

/// One context and one worker of UCX, and what they say of themselves.
class UcxWorker {
 public:
  /// Throws Error (see open.h).
  explicit UcxWorker(const UcxOptions& options);
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;
  ~UcxWorker() { close(); }

  [[nodiscard]] const UcxLibrary& library() const noexcept { return library_; }
  [[nodiscard]] ucp_context_h context() const noexcept { return context_; }
  [[nodiscard]] ucp_worker_h handle() const noexcept { return worker_; }
  /// Names this wire among all.
  [[nodiscard]] std::uint64_t owner() const noexcept { return owner_; }
  /// -1 without wake-up.
  [[nodiscard]] int event_fd() const noexcept { return event_fd_; }
  /// The room that UCX needs in front of a request.
  [[nodiscard]] std::size_t request_bytes() const noexcept { return request_bytes_; }
  /// What UCX itself can do; sizes of active messages are the caller's to limit further.
  [[nodiscard]] WireCapabilities capabilities() const;

  /// UCX calls `callback(self, ...)` for each active message of this id from now on. `flags`: UCP_AM_FLAG_*. Throws
  /// Error.
  void set_handler(unsigned id, ucp_am_recv_callback_t callback, void* self, std::uint32_t flags = 0) const;

  /// Sends an active message that is a header alone; UCX has its own record of the send. `flags`: UCP_AM_SEND_FLAG_*.
  /// Not ok: nothing was sent.
  [[nodiscard]] Status send_header(ucp_ep_h to, unsigned id, std::span<const std::byte> header,
                                   unsigned flags) const noexcept;

  unsigned progress() noexcept { return library_.worker_progress(worker_); }
  /// True: nothing is pending in UCX, and event_fd will say when something is.
  bool arm() noexcept { return event_fd_ >= 0 && library_.worker_arm(worker_) == UCS_OK; }
  /// From here on UCX calls nobody back. May be repeated.
  void close() noexcept;

 private:
  void open(const UcxOptions& options);

  const UcxLibrary& library_;
  const std::uint64_t owner_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
  std::size_t request_bytes_ = 0;
  std::uint64_t memory_types_ = 0;
};

/// UCX's name for a kind. The kind must be one of the capabilities.
constexpr ucs_memory_type_t memory_type_of(MemoryKind kind) noexcept {
  switch (kind) {
    case MemoryKind::cuda: return UCS_MEMORY_TYPE_CUDA;
    case MemoryKind::cuda_managed: return UCS_MEMORY_TYPE_CUDA_MANAGED;
    default: return UCS_MEMORY_TYPE_HOST;
  }
}

}  // namespace brant::port::ucx
