#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "brant/core/runtime.h"
#include "brant/core/timer.h"
#include "brant/pgas/device_window.cuh"
#include "brant/pgas/global_ptr.h"
#include "core/engine.h"
#include "models/pgas/proxy_ring_end.h"

namespace brant {

class SpaceState;

/// Performs what kernels order in one window, whose members are not all mapped. Orders begin as they come:
/// taken -> moved (the bytes of a put are visible, those of a get are here) -> acted (the flag is set, the atomic is
/// done) -> answered.
///
/// A flag is set when the puts ordered before it are visible, and the flags, so that whoever sees it sees them; those
/// of one barrier do not wait for each other. An atomic waits for the same. A flush is answered when all orders before
/// it are.
class WindowProxy final : private Poller, private Timer {
 public:
  /// `places`: of the members. Throws as Runtime::allocate.
  WindowProxy(SpaceState& space, std::vector<GlobalPtr<std::byte>> places, std::size_t bytes);
  ~WindowProxy();
  WindowProxy(const WindowProxy&) = delete;
  WindowProxy& operator=(const WindowProxy&) = delete;

  /// As kernels get it.
  [[nodiscard]] pgas::ProxyRing ring() const noexcept { return ring_; }
  [[nodiscard]] bool uses(std::int32_t rank, std::uint32_t segment) const noexcept;
  /// Not ok: it is lost, by what became of a member.
  [[nodiscard]] Status status() const noexcept { return fault_; }
  [[nodiscard]] Rank lost_member() const noexcept { return lost_member_; }

  /// A segment of it is retired, or it is not wanted any more: nothing more is performed, and what is under way ends.
  void close(bool is_own) noexcept;
  /// Nothing of it is under way, nor will be.
  [[nodiscard]] bool is_over() const noexcept { return fault_ != Status::ok && begun_ == ring_end_.taken(); }
  /// It is over, and no kernel looks at the ring: this process has closed it or retired its own part, and not only
  /// another one, of whose end kernels hear by the ring.
  [[nodiscard]] bool may_go() const noexcept { return own_is_retired_ && is_over(); }
  /// Members may have died or ended.
  void look_around() noexcept;

 private:
  enum class Stage : std::uint8_t { move, act, done };
  struct Order {
    WindowProxy* proxy = nullptr;
    pgas::ProxyOrder what{};
    Stage stage = Stage::done;
    bool under_way = false;
    Op op;
    alignas(16) std::byte value[pgas::kProxyPayloadBytes] = {};  ///< A flag, the value before an atomic, what was got.
  };
  /// Of all orders before one: what is not done yet.
  struct Before {
    bool puts = false;
    bool flags = false;  ///< But those of barriers.
    bool flags_of_barriers = false;
    bool any = false;
    std::uint32_t flagged = 0;  ///< By member: a flag there is not set yet.
  };

  [[nodiscard]] Order& order_at(std::uint64_t number) noexcept { return orders_[number % pgas::kProxySlots]; }
  unsigned poll() noexcept override;
  [[nodiscard]] bool lets_sleep() const noexcept override { return rests_; }
  void note_orders(unsigned taken) noexcept;
  void look_later() noexcept;
  void leave_pollers() noexcept;
  void begin(Order& order) noexcept;
  bool is_sound(const pgas::ProxyOrder& what) const noexcept;
  bool go_on(Order& order, const Before& before) noexcept;
  static void note(const Order& order, Before& before) noexcept;
  static bool may_act(const pgas::ProxyOrder& what, const Before& before) noexcept;
  Status post_move(Order& order) noexcept;
  Status post_act(Order& order) noexcept;
  Status post_flag(Order& order) noexcept;
  void ended(Order& order, Status status) noexcept;
  void finish(Order& order, bool failed) noexcept;
  void fail(Status status, std::size_t member, const char* why) noexcept;
  static void on_ended(void* order, const OpResult& result) noexcept;

  SpaceState& space_;
  const std::vector<GlobalPtr<std::byte>> places_;
  const std::size_t bytes_;
  Memory host_;
  Memory device_;
  pgas::ProxyRing ring_;
  ProxyRingEnd ring_end_;
  std::array<Order, pgas::kProxySlots> orders_;
  std::uint64_t begun_ = 0;  ///< Those before it are answered.
  TimePoint ordered_at_{};   ///< About when the last order came.
  bool rests_ = false;       ///< The process may sleep, and a timer wakes it for a look.
  Status fault_ = Status::ok;
  Rank lost_member_{-1};
  bool own_is_retired_ = false;
};

}  // namespace brant
