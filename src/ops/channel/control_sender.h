#pragma once

#include <limits>

#include "base/object_pool.h"
#include "core/engine.h"
#include "ops/channel/link_message.h"

namespace brant {

struct ChannelPeer;

/// Carries what the ends of this process tell others apart from data. All of one channel go the same way, since an
/// acknowledgement says of all messages before it that nothing went wrong: within this process, by the link where there
/// is one, else by the network; what finds no room there is sent later, in order. A peer that cannot be told for want
/// of memory is given up: nobody there or here waits for what was never said.
class ControlSender final : private Poller {
 public:
  using Deliver = void (*)(void* context, const ChannelControl& control) noexcept;
  /// `deliver` gets, from progress, what one end of this process says to another.
  ControlSender(Engine& engine, Deliver deliver, void* context) noexcept
      : engine_(engine), deliver_(deliver), context_(context) {}
  ~ControlSender() { engine_.pollers().detach(*this); }
  ControlSender(const ControlSender&) = delete;
  ControlSender& operator=(const ControlSender&) = delete;

  void send(ChannelPeer& to, const ChannelControl& control) noexcept;

 private:
  struct Send : port::WireOp {
    ControlSender* sender = nullptr;
    ChannelPeer* to = nullptr;
    ChannelControl control;
    ListHook<Send> hook;
  };
  using Sends = IntrusiveList<Send, &Send::hook>;

  Status post(Send& send) noexcept;
  Status hand_over(const Send& send) noexcept;
  void settle(Send& send, Status status) noexcept;
  void give_up(Peer& peer, const ChannelControl& control) noexcept;
  unsigned poll() noexcept override;

  Engine& engine_;
  const Deliver deliver_;
  void* const context_;
  ObjectPool<Send> sends_{std::numeric_limits<std::size_t>::max()};  // none may be missing
  Sends waiting_;  ///< For ends of this process, and for peers without room; oldest first.
};

}  // namespace brant
