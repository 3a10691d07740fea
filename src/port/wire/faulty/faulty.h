#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "port/wire.h"

/// A wire that breaks things on purpose: it decorates another wire and, by a policy, refuses posts, fails operations,
/// loses, delays or repeats what the other reports. For tests of the layers above. With an empty policy it behaves like
/// the wire inside.
///
///     FaultPolicy policy;
///     policy.rules = {{.point = FaultPoint::tag_send, .effect = FaultEffect::fail, .nth = 3, .status =
///     Status::peer_lost}}; auto wire = std::make_unique<FaultyWire>(network.open_wire(), policy);
namespace brant::port {

enum class FaultPoint : std::uint8_t { tag_send, tag_recv, am_send, am_receive, put, get, atomic, flush };
inline constexpr std::size_t kFaultPointCount = 8;

enum class FaultEffect : std::uint8_t {
  refuse,  ///< The post returns `status`; nothing is started.
  fail,    ///< The post is taken, nothing is started, and the operation completes with `status`.
  lose,    ///< The operation is performed, but its completion is only reported (`canceled`) after cancel, abandon or
           ///< disconnect.
};

/// Applies to the `nth` post of its kind, counted from 1, or, where nth is 0, to each with probability `rate`.
struct FaultRule {
  FaultPoint point = FaultPoint::tag_send;
  FaultEffect effect = FaultEffect::refuse;
  std::uint64_t nth = 0;
  double rate = 0;
  Status status = Status::io_error;
};

struct FaultPolicy {
  std::uint64_t seed = 1;
  std::vector<FaultRule> rules;   ///< The first that applies is taken.
  unsigned completion_delay = 0;  ///< Completions are held back for this many progress calls.
  double repeat_rate = 0;  ///< How often an active message (of those whose payload came along) is handed over twice.
  /// Runs within each post, when the wire inside has taken it: what others do while the poster has lost its core.
  std::function<void()> while_posting;
  std::uint64_t corrupt_nth_key = 0;  ///< This key, counted from 1, is packed with one bit wrong.
};

struct FaultCounts {
  std::uint64_t refused = 0, failed = 0, lost = 0, delayed = 0, repeated = 0, corrupted = 0;
};

class FaultyMemory;

/// The thread rule is that of the wire inside. Allocates for operations beyond the most that were in flight before.
class FaultyWire final : public Wire {
 public:
  /// Takes the wire over. Throws Error(invalid_argument) for a rule that can never apply, and std::bad_alloc.
  FaultyWire(std::unique_ptr<Wire> inside, FaultPolicy policy);
  ~FaultyWire() override;

  [[nodiscard]] const FaultCounts& counts() const noexcept { return counts_; }
  /// While held, nothing arrives and nothing completes here: progress and deliver do nothing.
  void hold(bool held) noexcept { held_ = held; }
  /// As if the wire inside had given the endpoint up: the next `deliver` tells it. Throws std::bad_alloc.
  void fail(WireEndpoint* endpoint) { failed_.push_back(endpoint); }
  [[nodiscard]] Wire& inside() noexcept { return *inside_; }

  [[nodiscard]] const WireCapabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] std::span<const std::byte> address() const noexcept override { return inside_->address(); }
  Result<WireEndpoint*> connect(std::span<const std::byte> address) noexcept override {
    return inside_->connect(address);
  }
  void disconnect(WireEndpoint* endpoint) noexcept override;
  void set_failure_handler(FailureHandler handler, void* context) noexcept override;
  Status tag_send(WireEndpoint* endpoint, std::uint64_t tag, ConstBuffer source, WireOp& op) noexcept override;
  Status tag_recv(std::uint64_t tag, std::uint64_t mask, Buffer landing, WireOp& op) noexcept override;
  void cancel(WireOp& op) noexcept override;
  void abandon(WireOp& op) noexcept override;
  void take_back(WireOp& op) noexcept override;
  unsigned drop_unread(std::uint64_t tag, std::uint64_t mask) noexcept override {
    return inside_->drop_unread(tag, mask);
  }
  Status am_send(WireEndpoint* endpoint, unsigned id, std::span<const std::byte> header, ConstBuffer payload,
                 WireOp& op) noexcept override;
  void set_am_handler(unsigned id, AmHandler handler, void* context) noexcept override;
  Status am_receive(AmMessage& message, Buffer landing, WireOp& op) noexcept override;
  void am_discard(AmMessage& message) noexcept override { inside_->am_discard(message); }
  unsigned progress() noexcept override;
  unsigned deliver(unsigned limit) noexcept override;
  [[nodiscard]] int event_fd() const noexcept override { return inside_->event_fd(); }
  bool arm() noexcept override;
  RemoteMemory* remote_memory() noexcept override;

 private:
  friend class FaultyMemory;

  /// What the wire inside sees in place of the caller's op.
  struct Shadow : WireOp {
    FaultyWire* wire = nullptr;
    WireOp* outer = nullptr;
    Shadow* following = nullptr;  ///< Free list.
    WireEndpoint* endpoint = nullptr;
    std::uint64_t due = 0;
    bool losing = false;   ///< Its completion is not to be reported.
    bool lost = false;     ///< It came, and was not.
    bool started = false;  ///< Pending in the wire inside.
  };
  struct AmSlot {
    FaultyWire* wire = nullptr;
    unsigned id = 0;
    AmHandler handler = nullptr;
    void* context = nullptr;
  };
  struct Repeat {
    unsigned id = 0;
    std::vector<std::byte> header, payload;
  };

  /// Applies the policy around one post. `start` posts the shadow to the wire inside.
  template <typename Start>
  Status post(FaultPoint point, WireEndpoint* endpoint, WireOp& op, Start&& start) noexcept;
  const FaultRule* rule_for(FaultPoint point) noexcept;
  bool chance(double rate) noexcept;
  Shadow* take() noexcept;
  void give(Shadow& shadow) noexcept;
  Shadow* shadow_of(const WireOp& op) const noexcept;
  void report_later(Shadow& shadow, Status status) noexcept;
  void end_lost(Shadow& shadow) noexcept;
  unsigned deliver_repeats(unsigned limit) noexcept;
  unsigned deliver_due(unsigned limit) noexcept;
  unsigned tell_failures() noexcept;

  static void on_inside_complete(WireOp& op) noexcept;
  static void on_message(void* slot, AmMessage& message) noexcept;

  FaultPolicy policy_;
  FaultCounts counts_;
  WireCapabilities capabilities_;
  std::array<std::uint64_t, kFaultPointCount> posts_{};
  std::uint64_t random_state_;
  std::uint64_t tick_ = 0;
  unsigned handled_ = 0;  ///< Handlers run in the present deliver.
  bool held_ = false;
  std::array<AmSlot, 64> am_slots_{};
  FailureHandler failure_handler_ = nullptr;
  void* failure_context_ = nullptr;
  std::vector<WireEndpoint*> failed_;  ///< Nobody was told yet.
  std::deque<Repeat> repeats_;
  std::deque<Shadow> shadows_;  ///< All there ever were; a deque does not move them.
  Shadow* free_ = nullptr;
  WireOpList ready_;  ///< Shadows whose completion waits for its time or for `deliver`.
  std::size_t ready_count_ = 0;
  std::unique_ptr<FaultyMemory> memory_;
  std::unique_ptr<Wire> inside_;  ///< Last: it ends first, while its shadows still exist.
};

}  // namespace brant::port
