#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/engine.h"
#include "ops/channel/link_message.h"
#include "ops/channel/transfer.h"
#include "ops/mapping/mapping.h"

namespace brant {

class LinkPump;

/// Places in a receiver's device memory for small messages of one peer that come before their receives, so that a
/// sender need not wait for those, and its source is free. The receiver makes them when the first such message asks for
/// its landing, and tells the sender of each that it has emptied. A message is copied twice on this way, so it is taken
/// only when the receive lets its sender wait. Bounded: while all slots are full, messages wait.
class DeviceSlots final : private Poller {
 public:
  /// Slots are numbered from 1; 0: none.
  static constexpr std::uint16_t kNone = 0;
  static constexpr std::uint16_t kSlots = 64;

  DeviceSlots(Engine& engine, Peer& peer, LinkPump& pump) noexcept : engine_(engine), peer_(peer), pump_(pump) {}
  DeviceSlots(const DeviceSlots&) = delete;
  DeviceSlots& operator=(const DeviceSlots&) = delete;
  ~DeviceSlots();

  // The receiver's side.
  /// Makes the slots and tells the peer of them, unless that was done or cannot be.
  void offer() noexcept;
  /// There is such a slot here, and it is so large.
  [[nodiscard]] bool can_hold(std::uint16_t slot, std::uint64_t bytes) const noexcept;
  [[nodiscard]] const std::byte* at(std::uint16_t slot) const noexcept;
  /// A slot is empty again: the peer may use it.
  void emptied(std::uint16_t slot) noexcept;

  // The sender's side.
  void on_offered(const LinkMessage& message) noexcept;
  void on_emptied(std::uint16_t slot) noexcept;
  /// No message went into a slot that `poll` had chosen for it.
  void give_back(std::uint16_t slot) noexcept;
  /// A send that has asked for its landing goes into a slot if none comes in time (`LinkSender::send_early`).
  void await(Transfer& transfer) noexcept;
  /// Nothing happens if it does not wait.
  void forget(Transfer& transfer) noexcept;
  /// The address of a slot over there.
  [[nodiscard]] std::byte* there(std::uint16_t slot) const noexcept;

 private:
  unsigned poll() noexcept override;
  void map() noexcept;
  void watch() noexcept;

  Engine& engine_;
  Peer& peer_;
  LinkPump& pump_;
  std::byte* here_ = nullptr;
  bool offered_ = false;

  std::optional<LinkMessage> offer_;  ///< Of the peer's slots, until they are mapped or cannot be.
  MappedMemory there_;
  std::vector<std::uint16_t> free_;
  IntrusiveList<Transfer, &Transfer::watch_hook> waiting_;  ///< Oldest first.
};

}  // namespace brant
