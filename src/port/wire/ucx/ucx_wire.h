#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "port/wire.h"
#include "port/wire/ucx/open.h"
#include "port/wire/ucx/ucx_endpoints.h"
#include "port/wire/ucx/ucx_messages.h"
#include "port/wire/ucx/ucx_operations.h"
#include "port/wire/ucx/ucx_remote_memory.h"
#include "port/wire/ucx/ucx_tags.h"
#include "port/wire/ucx/ucx_worker.h"

namespace brant::port::ucx {

/// The wire over UCX: owns the parts, in the order of their lives. UCX callbacks only link what happened into lists;
/// the caller's code runs in `deliver`.
class UcxWire final : public Wire {
 public:
  explicit UcxWire(const UcxOptions& options);
  ~UcxWire() override;

  [[nodiscard]] const WireCapabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] std::span<const std::byte> address() const noexcept override { return address_; }
  Result<WireEndpoint*> connect(std::span<const std::byte> address) noexcept override {
    return endpoints_.connect(address);
  }
  void disconnect(WireEndpoint* endpoint) noexcept override { endpoints_.disconnect(endpoint); }
  void set_failure_handler(FailureHandler handler, void* context) noexcept override {
    endpoints_.set_failure_handler(handler, context);
  }
  Status tag_send(WireEndpoint* endpoint, std::uint64_t tag, ConstBuffer source, WireOp& op) noexcept override {
    return tags_.send(endpoint, tag, source, op);
  }
  Status tag_recv(std::uint64_t tag, std::uint64_t mask, Buffer landing, WireOp& op) noexcept override {
    return tags_.receive(tag, mask, landing, op);
  }
  void cancel(WireOp& op) noexcept override { tags_.cancel(op); }
  void abandon(WireOp& op) noexcept override { tags_.abandon(op); }
  void take_back(WireOp& op) noexcept override { tags_.take_back(op); }
  unsigned drop_unread(std::uint64_t tag, std::uint64_t mask) noexcept override { return tags_.drop_unread(tag, mask); }
  Status am_send(WireEndpoint* endpoint, unsigned id, std::span<const std::byte> header, ConstBuffer payload,
                 WireOp& op) noexcept override {
    return messages_.send(endpoint, id, header, payload, op);
  }
  void set_am_handler(unsigned id, AmHandler handler, void* context) noexcept override {
    messages_.set_handler(id, handler, context);
  }
  Status am_receive(AmMessage& message, Buffer landing, WireOp& op) noexcept override {
    return messages_.receive(message, landing, op);
  }
  void am_discard(AmMessage& message) noexcept override { messages_.discard(message); }
  unsigned progress() noexcept override;
  unsigned deliver(unsigned limit) noexcept override;
  [[nodiscard]] int event_fd() const noexcept override { return worker_.event_fd(); }
  bool arm() noexcept override;
  RemoteMemory* remote_memory() noexcept override { return &remote_memory_; }

 private:
  UcxWorker worker_;
  const WireCapabilities capabilities_;
  UcxOperations operations_;
  UcxEndpoints endpoints_;
  const std::vector<std::byte> address_;
  UcxTags tags_;
  UcxMessages messages_;
  UcxRemoteMemory remote_memory_;
};

}  // namespace brant::port::ucx
