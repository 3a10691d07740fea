#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "port/wire/loopback/alarm.h"
#include "port/wire/loopback/arrivals.h"
#include "port/wire/loopback/fabric.h"
#include "port/wire/loopback/operations.h"
#include "port/wire/loopback/posted_receives.h"
#include "port/wire/loopback/records.h"

namespace brant::port::loopback {

class LoopbackMemory;

/// One wire of a LoopbackNetwork: sends messages into the parts of the other one, and owns its own.
class LoopbackWire final : public Wire {
 public:
  /// `owned` is the fabric itself when the wire is a network of its own, else null.
  LoopbackWire(Fabric& fabric, std::unique_ptr<Fabric> owned);
  ~LoopbackWire() override;

  [[nodiscard]] const WireCapabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] std::span<const std::byte> address() const noexcept override { return address_; }
  Result<WireEndpoint*> connect(std::span<const std::byte> address) noexcept override;
  void disconnect(WireEndpoint* endpoint) noexcept override;
  Status tag_send(WireEndpoint* endpoint, std::uint64_t tag, ConstBuffer source, WireOp& op) noexcept override;
  Status tag_recv(std::uint64_t tag, std::uint64_t mask, Buffer landing, WireOp& op) noexcept override;
  void cancel(WireOp& op) noexcept override;
  unsigned drop_unread(std::uint64_t tag, std::uint64_t mask) noexcept override;
  Status am_send(WireEndpoint* endpoint, unsigned id, std::span<const std::byte> header, ConstBuffer payload,
                 WireOp& op) noexcept override;
  void set_am_handler(unsigned id, AmHandler handler, void* context) noexcept override;
  Status am_receive(AmMessage& message, Buffer landing, WireOp& op) noexcept override;
  void am_discard(AmMessage& message) noexcept override;
  unsigned progress() noexcept override;
  unsigned deliver(unsigned limit) noexcept override;
  [[nodiscard]] int event_fd() const noexcept override { return alarm_.fd(); }
  bool arm() noexcept override;
  RemoteMemory* remote_memory() noexcept override;

  // For LoopbackNetwork and LoopbackMemory.
  void kill() noexcept;
  [[nodiscard]] bool dead() const noexcept { return operations_.ended(); }
  [[nodiscard]] Fabric& fabric() noexcept { return fabric_; }
  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  [[nodiscard]] Operations& operations() noexcept { return operations_; }
  Endpoint* checked(WireEndpoint* endpoint) const noexcept;
  /// Null when the peer is dead or closed: what is sent there vanishes.
  [[nodiscard]] LoopbackWire* peer_of(const Endpoint& endpoint) const noexcept;
  [[nodiscard]] std::uint64_t tick() const noexcept { return tick_; }

 private:
  struct AmSlot {
    AmHandler handler = nullptr;
    void* context = nullptr;
  };

  Message* make_message(Endpoint& endpoint, MessageKind type, std::uint64_t tag, std::span<const std::byte> header,
                        ConstBuffer payload, bool eager, Status& why) noexcept;
  Status dispatch(Message& message, WireOp& op) noexcept;
  Status send_to_match(LoopbackWire& peer, Receive& receive, std::uint64_t tag, ConstBuffer source,
                       WireOp& op) noexcept;

  // The receiving side.
  void accept(Message& message) noexcept;
  unsigned accept_due() noexcept;
  void land(Message& message, Buffer landing, WireOp& op) noexcept;
  /// Ends the sender's operation, if there is one.
  static void end_at_sender(Message& message, Status status) noexcept;
  void hand_over(Message& message) noexcept;

  std::unique_ptr<Fabric> owned_;
  Fabric& fabric_;
  std::size_t index_ = 0;
  std::uint64_t tick_ = 0;
  bool unhandled_reported_ = false;
  Alarm alarm_;
  const WireCapabilities capabilities_;
  Operations operations_;
  Arrivals arrivals_;
  PostedReceives receives_;
  std::vector<std::byte> address_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::array<AmSlot, 64> am_slots_{};
  std::unique_ptr<LoopbackMemory> memory_;
};

}  // namespace brant::port::loopback
