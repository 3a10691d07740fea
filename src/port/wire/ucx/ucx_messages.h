#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <ucp/api/ucp.h>

#include "port/wire.h"
#include "port/wire/ucx/open.h"
#include "port/wire/ucx/ucx_endpoints.h"
#include "port/wire/ucx/ucx_inbox.h"
#include "port/wire/ucx/ucx_operations.h"
#include "port/wire/ucx/ucx_worker.h"

namespace brant::port::ucx {

/// Active messages: UCX hands over what arrived inside of its progress, and the handlers run in `deliver`.
class UcxMessages {
 public:
  /// Takes the 64 ids of the callers. Throws Error.
  UcxMessages(UcxWorker& worker, UcxOperations& operations, UcxEndpoints& endpoints,
              const WireCapabilities& capabilities, std::size_t messages_max);
  UcxMessages(const UcxMessages&) = delete;
  UcxMessages& operator=(const UcxMessages&) = delete;

  /// See Wire, of these four.
  Status send(WireEndpoint* endpoint, unsigned id, std::span<const std::byte> header, ConstBuffer payload,
              WireOp& op) noexcept;
  void set_handler(unsigned id, AmHandler handler, void* context) noexcept;
  Status receive(AmMessage& message, Buffer landing, WireOp& op) noexcept;
  void discard(AmMessage& message) noexcept;

  [[nodiscard]] bool any_arrived() const noexcept { return !inbox_.empty(); }
  /// No more may arrive until some were delivered.
  [[nodiscard]] bool full() const noexcept { return inbox_.size() >= messages_max_; }
  /// Runs the handler of one message. False: there is none.
  bool deliver_one() noexcept {
    InboxMessage* message = inbox_.pop();
    if (message != nullptr) hand_over(*message);
    return message != nullptr;
  }
  /// Gives what has arrived back to UCX, unread.
  void drop_arrived() noexcept;

 private:
  struct Slot {
    UcxMessages* messages = nullptr;
    unsigned id = 0;
    AmHandler handler = nullptr;
    void* context = nullptr;
  };

  void register_slots();
  void hand_over(InboxMessage& message) noexcept;
  ucs_status_t arrived(Slot& slot, std::span<const std::byte> header, void* data, std::size_t bytes,
                       std::uint64_t attributes) noexcept;
  static void on_landed(void* request, ucs_status_t status, std::size_t bytes, void* context) noexcept;
  static ucs_status_t on_arrived(void* slot, const void* header, std::size_t header_bytes, void* data,
                                 std::size_t bytes, const ucp_am_recv_param_t* param) noexcept;

  UcxWorker& worker_;
  const UcxLibrary& library_;
  UcxOperations& operations_;
  UcxEndpoints& endpoints_;
  const WireCapabilities& capabilities_;
  const std::size_t messages_max_;
  // As in UcxTags.
  ucp_request_param_t send_params_{};
  ucp_request_param_t recv_params_{};
  std::size_t landed_bytes_ = 0;
  UcxInbox inbox_;
  std::array<Slot, 64> slots_{};
  bool unhandled_reported_ = false;
};

}  // namespace brant::port::ucx
