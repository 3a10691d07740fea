#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <ucp/api/ucp.h>

#include "port/wire.h"
#include "port/wire/ucx/open.h"
#include "port/wire/ucx/ucx_endpoint.h"
#include "port/wire/ucx/ucx_operations.h"
#include "port/wire/ucx/ucx_worker.h"

namespace brant::port::ucx {

/// The connections of a wire: how they begin, fail and end.
class UcxEndpoints {
 public:
  UcxEndpoints(UcxWorker& worker, UcxOperations& operations, const UcxOptions& options);
  UcxEndpoints(const UcxEndpoints&) = delete;
  UcxEndpoints& operator=(const UcxEndpoints&) = delete;

  /// The bytes a peer needs to connect to this wire. Throws Error.
  [[nodiscard]] std::vector<std::byte> own_address() const;
  Result<WireEndpoint*> connect(std::span<const std::byte> address) noexcept;
  void disconnect(WireEndpoint* endpoint) noexcept;
  void set_failure_handler(FailureHandler handler, void* context) noexcept {
    failure_handler_ = handler;
    failure_context_ = context;
  }

  /// Null unless the endpoint is of this wire and in use; then `why` says what to return.
  UcxEndpoint* checked(WireEndpoint* endpoint, Status& why) const noexcept {
    auto* mine = reinterpret_cast<UcxEndpoint*>(endpoint);
    if (mine == nullptr || mine->table != this || mine->closed) {
      why = Status::invalid_argument;
      return nullptr;
    }
    if (mine->failed) {
      why = Status::peer_lost;
      return nullptr;
    }
    return mine;
  }

  /// Something was lost of which nobody knows whose it was.
  void fail_all() noexcept;
  [[nodiscard]] bool failures_due() const noexcept { return failures_due_; }
  /// Calls the failure handler for each endpoint that failed. It may disconnect, but adds no endpoints. Returns how
  /// many.
  unsigned tell_failures() noexcept;

  /// Tidy first (what was sent still arrives), by force when a peer does not answer in time.
  void close() noexcept;

 private:
  Result<ucp_ep_h> create(const ucp_address_t* address, UcxEndpoint& endpoint) noexcept;
  /// One to the wire of that name which its user has closed. Null: there is none.
  [[nodiscard]] UcxEndpoint* take_kept(std::uint64_t owner) noexcept;
  ucs_status_ptr_t start_close(UcxEndpoint& endpoint, bool force) noexcept;
  void fail(UcxEndpoint& endpoint) noexcept;
  static void on_failed(void* endpoint, ucp_ep_h handle, ucs_status_t status) noexcept;

  UcxWorker& worker_;
  const UcxLibrary& library_;
  UcxOperations& operations_;
  const bool peer_errors_on_same_host_;
  const bool mixed_versions_;
  const std::uint64_t host_;
  std::vector<std::unique_ptr<UcxEndpoint>> endpoints_;
  FailureHandler failure_handler_ = nullptr;
  void* failure_context_ = nullptr;
  bool failures_due_ = false;  ///< Some endpoint failed and nobody was told yet.
};

}  // namespace brant::port::ucx
