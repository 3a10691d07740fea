#pragma once

#include <cstddef>

#include "port/wire.h"
#include "port/wire/loopback/alarm.h"

namespace brant::port::loopback {

/// The operations that a wire's owner has posted: how many are in flight, and those that are done and wait for
/// `deliver`.
class Operations {
 public:
  Operations(const WireCapabilities& capabilities, std::size_t in_flight_max, Alarm& alarm) noexcept
      : capabilities_(capabilities), in_flight_max_(in_flight_max), alarm_(alarm) {}
  Operations(const Operations&) = delete;
  Operations& operator=(const Operations&) = delete;

  /// Whether one may be posted with this memory.
  [[nodiscard]] Status check(const void* data, std::size_t bytes, MemoryKind kind, const WireOp& op) const noexcept;

  /// Room for one more in flight. False: there is none.
  bool take_slot() noexcept {
    const bool room = in_flight_ < in_flight_max_;
    if (room) ++in_flight_;
    return room;
  }
  void give_slot() noexcept { --in_flight_; }

  void complete(WireOp& op, Status status) noexcept;
  [[nodiscard]] bool any_done() const noexcept { return !done_.empty(); }
  /// Tells the owner of one that is done. False: there is none.
  bool deliver_one() noexcept;

  /// The wire died: nothing is posted any more, and nobody is told of anything.
  void end() noexcept;
  [[nodiscard]] bool ended() const noexcept { return ended_; }

 private:
  const WireCapabilities& capabilities_;
  const std::size_t in_flight_max_;
  Alarm& alarm_;
  std::size_t in_flight_ = 0;
  WireOpList done_;
  bool ended_ = false;
};

}  // namespace brant::port::loopback
