#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "port/wire/loopback/fabric.h"
#include "port/wire/loopback/records.h"

namespace brant::port::loopback {

class LoopbackMemory;

/// One wire of a LoopbackNetwork.
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

  // For LoopbackNetwork and LoopbackMemory.
  void kill() noexcept;
  [[nodiscard]] bool dead() const noexcept { return dead_; }
  [[nodiscard]] Fabric& fabric() noexcept { return fabric_; }
  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  Endpoint* checked(WireEndpoint* endpoint) const noexcept;
  [[nodiscard]] Status check_memory(const void* data, std::size_t bytes, MemoryKind kind,
                                    const WireOp& op) const noexcept;
  void complete(WireOp& op, Status status) noexcept;
  /// Null when the peer is dead or closed: what is sent there vanishes.
  [[nodiscard]] LoopbackWire* peer_of(const Endpoint& endpoint) const noexcept;
  bool take_slot() noexcept { return in_flight_ < fabric_.options().requests_max && (++in_flight_, true); }
  void give_slot() noexcept { --in_flight_; }
  [[nodiscard]] std::uint64_t tick() const noexcept { return tick_; }

 private:
  struct AmSlot {
    AmHandler handler = nullptr;
    void* context = nullptr;
  };

  Message* make_message(Endpoint& endpoint, MessageKind type, std::uint64_t tag, std::span<const std::byte> header,
                        ConstBuffer payload, bool eager, Status& why) noexcept;
  Status dispatch(Message& message, WireOp& op) noexcept;
  Status send_to_match(Receive& receive, std::uint64_t tag, ConstBuffer source, WireOp& op) noexcept;

  // The receiving side.
  Messages& list_of(Place place) noexcept;
  void put_into(Message& message, Place place) noexcept;
  /// Off its sender's list of pending messages, if it is there.
  static void unpend(Message& message) noexcept;
  void unlink(Message& message) noexcept;
  void accept(Message& message) noexcept;
  unsigned accept_due() noexcept;
  [[nodiscard]] bool overtakes_nobody(const Message& message) const noexcept;
  Receive* take_match(std::uint64_t tag) noexcept;
  void land(Message& message, Buffer landing, WireOp& op) noexcept;
  /// Ends the sender's operation, if there is one.
  static void end_at_sender(Message& message, Status status) noexcept;
  void release(Message& message) noexcept;
  void hand_over(Message& message) noexcept;
  /// The sender of the message gave up: nothing may be read from its memory any more.
  void sender_gone(Message& message) noexcept;
  void forget_messages_from(const LoopbackWire& sender) noexcept;
  void drop_what_came() noexcept;
  void wake() noexcept;

  std::unique_ptr<Fabric> owned_;
  Fabric& fabric_;
  std::size_t index_ = 0;
  bool dead_ = false;
  bool armed_ = false;
  bool unhandled_reported_ = false;
  int event_fd_ = -1;
  std::uint64_t tick_ = 0;
  std::size_t in_flight_ = 0;
  std::size_t eager_held_ = 0;     ///< Eager messages that have been sent here and are not yet received.
  Message* in_handler_ = nullptr;  ///< Its record must outlive the handler's call.
  bool released_in_handler_ = false;
  WireCapabilities capabilities_;
  std::vector<std::byte> address_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::array<AmSlot, 64> am_slots_{};
  WireOpList completed_;
  Messages arriving_;    ///< Sent, not yet seen by this wire's progress.
  Messages unexpected_;  ///< Tagged messages that no receive matches.
  std::size_t in_inbox_ = 0;
  Messages inbox_;    ///< Active messages whose handler has not run.
  Messages waiting_;  ///< Active messages whose payload waits for am_receive.
  Receives posted_;
  Pool<Receive, &Receive::place, 64> receives_;
  std::unique_ptr<LoopbackMemory> memory_;
};

}  // namespace brant::port::loopback
