#pragma once

#include <cstdint>

#include <ucp/api/ucp.h>

#include "brant/base/clock.h"
#include "port/wire.h"
#include "port/wire/ucx/ucx_endpoints.h"
#include "port/wire/ucx/ucx_operations.h"
#include "port/wire/ucx/ucx_worker.h"

namespace brant::port::ucx {

/// Tagged messages, and receives that are withdrawn.
class UcxTags {
 public:
  UcxTags(UcxWorker& worker, UcxOperations& operations, UcxEndpoints& endpoints) noexcept;
  UcxTags(const UcxTags&) = delete;
  UcxTags& operator=(const UcxTags&) = delete;

  /// See Wire, of all of these.
  Status send(WireEndpoint* endpoint, std::uint64_t tag, ConstBuffer source, WireOp& op) noexcept;
  Status receive(std::uint64_t tag, std::uint64_t mask, Buffer landing, WireOp& op) noexcept;
  void cancel(WireOp& op) noexcept;
  void abandon(WireOp& op) noexcept;
  void take_back(WireOp& op) noexcept;
  unsigned drop_unread(std::uint64_t tag, std::uint64_t mask) noexcept;

 private:
  static void on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info, void* context) noexcept;

  UcxWorker& worker_;
  const UcxLibrary& library_;
  UcxOperations& operations_;
  UcxEndpoints& endpoints_;
  // Filled once; a post changes two or three members. Safe because one thread owns the wire and UCX callbacks never
  // post.
  ucp_request_param_t send_params_{};
  ucp_request_param_t recv_params_{};
  ucp_tag_recv_info_t recv_info_{};
  TimePoint take_back_turn_{};
  Clock::duration take_back_spent_{};  ///< In this turn.
};

}  // namespace brant::port::ucx
