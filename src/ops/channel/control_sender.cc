#include "ops/channel/control_sender.h"

#include <span>

#include "base/log.h"
#include "core/am_ids.h"
#include "core/link_services.h"
#include "ops/channel/channel_peer.h"

namespace brant {

void ControlSender::send(ChannelPeer& to, const ChannelControl& control) noexcept {
  Peer& peer = to.peer;
  if (peer.lost) return;
  if (peer.link != nullptr && control.kind != ChannelControl::Kind::last) {
    if (peer.link->post_control(link_service::kChannel, std::as_bytes(std::span(&control, 1)))) return;
    return give_up(peer, control);
  }
  Send* send = sends_.take();
  if (send == nullptr) return give_up(peer, control);
  send->sender = this;
  send->to = &to;
  send->control = control;
  send->on_complete = [](port::WireOp& op) noexcept {
    auto& done = static_cast<Send&>(op);
    done.sender->sends_.give_back(&done);
  };
  // No post of one end runs into one of the other, and nothing passes what waits for the same peer.
  const bool later = peer.same_process || to.controls_waiting != 0;
  settle(*send, later ? Status::limit_reached : post(*send));
}

/// As when a link has no memory: the other end would wait for ever for what was never said.
void ControlSender::give_up(Peer& peer, const ChannelControl& control) noexcept {
  log::error("channel {} to rank {}: no memory for a control record; the peer is given up", control.channel,
             peer.rank.value);
  if (!peer.same_process) engine_.peers().suspect(peer);
}

/// A lost acknowledgement would hold the other end back for ever: what found no room is sent later.
void ControlSender::settle(Send& send, Status status) noexcept {
  if (status == Status::in_progress) return;
  if (status != Status::limit_reached) return sends_.give_back(&send);
  waiting_.push_back(send);
  ++send.to->controls_waiting;
  engine_.pollers().attach(*this);
}

/// limit_reached: the network has no room for it. in_progress: it has it. Else that was all.
Status ControlSender::post(Send& send) noexcept {
  Peer& peer = send.to->peer;
  const auto bytes = std::as_bytes(std::span(&send.control, 1));
  const Status status =
      peer.lost ? Status::peer_lost : engine_.wire().am_send(peer.endpoint, am_id::kChannelControl, bytes, {}, send);
  const bool ended = status != Status::in_progress && status != Status::limit_reached;
  if (ended && status != Status::ok && status != Status::peer_lost) {
    log::error("channel {}: a control message to rank {} failed: {}; the peer is given up", send.control.channel,
               peer.rank.value, status_text(status));
    engine_.peers().suspect(peer);
  }
  return status;
}

Status ControlSender::hand_over(const Send& send) noexcept {
  const ChannelControl control = send.control;
  deliver_(context_, control);
  return Status::ok;
}

/// One peer's want of room does not stop the others. What is said meanwhile, within this process, is for the next time.
unsigned ControlSender::poll() noexcept {
  unsigned events = 0;
  Sends now;
  while (Send* send = waiting_.pop_front()) {
    send->to->network_full = false;
    now.push_back(*send);
  }
  while (Send* send = now.pop_front()) {
    ChannelPeer& to = *send->to;
    --to.controls_waiting;
    Status status = Status::limit_reached;
    if (!to.network_full) status = to.peer.same_process ? hand_over(*send) : post(*send);
    to.network_full = status == Status::limit_reached;
    events += to.network_full ? 0 : 1;
    settle(*send, status);
  }
  if (waiting_.empty()) engine_.pollers().detach(*this);
  return events;
}

}  // namespace brant
