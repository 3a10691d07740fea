#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <ucp/api/ucp.h>

#include "brant/base/clock.h"
#include "port/wire.h"
#include "port/wire/ucx/open.h"
#include "port/wire/ucx/ucx_inbox.h"
#include "port/wire/ucx/ucx_library.h"
#include "port/wire/ucx/ucx_requests.h"

namespace brant::port::ucx {

class UcxAtomics;
class UcxRemoteMemory;

/// What a WireEndpoint of this adapter is. Lives until the wire closes, so that misuse after `disconnect` is an error
/// and not a crash.
struct UcxEndpoint {
  ucp_ep_h handle = nullptr;
  UcxWire* wire = nullptr;
  std::uint64_t owner = 0;  ///< Names the peer's wire; keys carry the same number.
  bool to_self = false;
  bool peer_errors = false;  ///< Made in UCX's error mode PEER.
  bool failed = false;       ///< UCX reported the peer lost.
  bool failure_told = false;
  bool closed = false;
  bool kept = false;           ///< Closed for its user alone: who connects to the same wire again gets it.
  std::uint64_t sequence = 0;  ///< Of the last atomic operation or flush.
  UcxRequestList pending;
};

/// The wire over UCX: one context and one worker. UCX callbacks only link what happened into lists; the caller's code
/// runs in `deliver`.
class UcxWire final : public Wire {
 public:
  explicit UcxWire(const UcxOptions& options);
  ~UcxWire() override;

  [[nodiscard]] const WireCapabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] std::span<const std::byte> address() const noexcept override { return address_; }
  Result<WireEndpoint*> connect(std::span<const std::byte> address) noexcept override;
  void disconnect(WireEndpoint* endpoint) noexcept override;
  void set_failure_handler(FailureHandler handler, void* context) noexcept override {
    failure_handler_ = handler;
    failure_context_ = context;
  }
  Status tag_send(WireEndpoint* endpoint, std::uint64_t tag, ConstBuffer source, WireOp& op) noexcept override;
  Status tag_recv(std::uint64_t tag, std::uint64_t mask, Buffer landing, WireOp& op) noexcept override;
  void cancel(WireOp& op) noexcept override;
  void abandon(WireOp& op) noexcept override;
  void take_back(WireOp& op) noexcept override;
  Status am_send(WireEndpoint* endpoint, unsigned id, std::span<const std::byte> header, ConstBuffer payload,
                 WireOp& op) noexcept override;
  void set_am_handler(unsigned id, AmHandler handler, void* context) noexcept override;
  Status am_receive(AmMessage& message, Buffer landing, WireOp& op) noexcept override;
  void am_discard(AmMessage& message) noexcept override;
  unsigned progress() noexcept override;
  unsigned deliver(unsigned limit) noexcept override;
  [[nodiscard]] int event_fd() const noexcept override { return event_fd_; }
  bool arm() noexcept override;
  RemoteMemory* remote_memory() noexcept override;

  // For UcxRemoteMemory.
  [[nodiscard]] const UcxLibrary& library() const noexcept { return library_; }
  [[nodiscard]] ucp_context_h context() const noexcept { return context_; }
  [[nodiscard]] std::uint64_t owner() const noexcept { return owner_; }
  /// Null unless the endpoint is of this wire and in use; then `why` says what to return.
  UcxEndpoint* checked(WireEndpoint* endpoint, Status& why) const noexcept;
  [[nodiscard]] Status check_memory(const void* data, std::size_t bytes, MemoryKind kind,
                                    const WireOp& op) const noexcept;
  UcxRequest* start(RequestKind kind, UcxEndpoint* endpoint, WireOp& op) noexcept;
  /// What UCX answered to a post becomes what the wire answers.
  Status posted(ucs_status_ptr_t answer, UcxRequest& request, WireOp& op) noexcept;
  ucp_request_param_t& one_sided_params(UcxRequest& request, MemoryKind kind) noexcept;
  /// Ends a request of which UCX knows nothing (any more).
  void finish(UcxRequest& request, Status status) noexcept;
  /// Puts a request that UCX does not hold among the pending ones of its endpoint.
  Status wait_without_ucx(UcxRequest& request) noexcept;
  void give(UcxRequest& request) noexcept { requests_->give(request); }
  [[nodiscard]] UcxRequest* find(std::uint64_t address) const noexcept { return requests_->find(address); }
  [[nodiscard]] ucp_worker_h worker() const noexcept { return worker_; }
  [[nodiscard]] UcxAtomics& atomics() noexcept { return *atomics_; }
  [[nodiscard]] UcxRemoteMemory& segments() noexcept { return *remote_memory_; }

 private:
  struct AmSlot {
    UcxWire* wire = nullptr;
    unsigned id = 0;
    AmHandler handler = nullptr;
    void* context = nullptr;
  };

  void open_worker(const UcxOptions& options);
  void read_capabilities();
  void pack_address();
  void register_am_slots();
  void prepare_params() noexcept;
  Result<ucp_ep_h> create_endpoint(const ucp_address_t* address, UcxEndpoint& endpoint) noexcept;
  ucs_status_ptr_t start_close(UcxEndpoint& endpoint, bool force) noexcept;
  void close_endpoints() noexcept;
  void release_ucx() noexcept;

  void ended(UcxRequest& request, ucs_status_t status) noexcept;
  void give_up(UcxRequest& request) noexcept;
  [[nodiscard]] static UcxRequest* pending_receive(const WireOp& op) noexcept;
  void complete_later(WireOp& op, Status status) noexcept;
  ucs_status_t arrived(AmSlot& slot, std::span<const std::byte> header, void* data, std::size_t bytes,
                       std::uint64_t attributes) noexcept;
  void hand_over(InboxMessage& message) noexcept;
  void fail(UcxEndpoint& endpoint) noexcept;
  unsigned tell_failures() noexcept;

  static void on_sent(void* request, ucs_status_t status, void* context) noexcept;
  static void on_tag_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                              void* context) noexcept;
  static void on_am_landed(void* request, ucs_status_t status, std::size_t bytes, void* context) noexcept;
  static ucs_status_t on_am_arrived(void* slot, const void* header, std::size_t header_bytes, void* data,
                                    std::size_t bytes, const ucp_am_recv_param_t* param) noexcept;
  static void on_endpoint_failed(void* endpoint, ucp_ep_h handle, ucs_status_t status) noexcept;

  const UcxLibrary& library_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
  std::uint64_t owner_ = 0;
  std::size_t messages_max_;
  bool peer_errors_on_same_host_;
  std::uint64_t host_ = 0;
  bool mixed_versions_;
  bool unhandled_reported_ = false;
  WireCapabilities capabilities_;
  std::vector<std::byte> address_;

  // Filled once; a post changes two or three members. Safe because one thread owns the wire and UCX callbacks never
  // post.
  ucp_request_param_t send_params_{};
  ucp_request_param_t recv_params_{};
  ucp_request_param_t am_params_{};
  ucp_request_param_t am_recv_params_{};
  ucp_request_param_t one_sided_params_{};
  ucp_tag_recv_info_t recv_info_{};
  std::size_t am_landed_bytes_ = 0;

  std::unique_ptr<UcxRequestPool> requests_;
  WireOpList completed_;
  UcxInbox inbox_;
  std::array<AmSlot, 64> am_slots_{};
  std::vector<std::unique_ptr<UcxEndpoint>> endpoints_;
  FailureHandler failure_handler_ = nullptr;
  void* failure_context_ = nullptr;
  TimePoint take_back_turn_{};
  Clock::duration take_back_spent_{};  ///< In this turn.
  bool failures_due_ = false;          ///< Some endpoint failed and nobody was told yet.
  std::unique_ptr<UcxRemoteMemory> remote_memory_;
  std::unique_ptr<UcxAtomics> atomics_;
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
