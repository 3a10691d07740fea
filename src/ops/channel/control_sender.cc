#include "ops/channel/control_sender.h"

#include <iterator>
#include <new>
#include <span>

#include "base/log.h"
#include "core/am_ids.h"
#include "core/link_services.h"

namespace brant {

void ControlSender::send(Peer& peer, const ChannelControl& control) noexcept {
  if (peer.lost) return;
  if (peer.link != nullptr && control.kind != ChannelControl::Kind::last) {
    if (peer.link->post_control(link_service::kChannel, std::as_bytes(std::span(&control, 1)))) return;
    return give_up(peer, control);
  }
  Send* send = sends_.take();
  if (send == nullptr) return give_up(peer, control);
  send->sender = this;
  send->peer = &peer;
  send->control = control;
  if (peer.same_process) {
    own_.push_back(*send);
    return engine_.pollers().attach(*this);
  }
  send->on_complete = [](port::WireOp& op) noexcept {
    auto& done = static_cast<Send&>(op);
    done.sender->sends_.give_back(&done);
  };
  // A lost acknowledgement would hold the other end back for ever: what found no room is sent later.
  const bool others_wait = refused_.contains(peer.rank.value);
  const Status status = others_wait ? Status::limit_reached : post(*send);
  if (status == Status::limit_reached) return send_later(*send);
  if (status != Status::in_progress) sends_.give_back(send);
}

/// As when a link has no memory: the other end would wait for ever for what was never said.
void ControlSender::give_up(Peer& peer, const ChannelControl& control) noexcept {
  log::error("channel {} to rank {}: no memory for a control record; the peer is given up", control.channel,
             peer.rank.value);
  if (!peer.same_process) engine_.peers().suspect(peer);
}

/// Behind those of the same peer.
void ControlSender::send_later(Send& send) noexcept {
  try {
    refused_[send.peer->rank.value].push_back(send);
  } catch (const std::bad_alloc&) {
    give_up(*send.peer, send.control);
    return sends_.give_back(&send);
  }
  engine_.pollers().attach(*this);
}

/// limit_reached: the network has no room for it. in_progress: it has it. Else that was all.
Status ControlSender::post(Send& send) noexcept {
  const auto bytes = std::as_bytes(std::span(&send.control, 1));
  const Status status = send.peer->lost
                            ? Status::peer_lost
                            : engine_.wire().am_send(send.peer->endpoint, am_id::kChannelControl, bytes, {}, send);
  const bool ended = status != Status::in_progress && status != Status::limit_reached;
  if (ended && status != Status::ok && status != Status::peer_lost) {
    log::error("channel {}: a control message to rank {} failed: {}; the peer is given up", send.control.channel,
               send.peer->rank.value, status_text(status));
    engine_.peers().suspect(*send.peer);
  }
  return status;
}

/// What these lead to is told next time.
unsigned ControlSender::deliver_own() noexcept {
  Sends now;
  while (Send* send = own_.pop_front()) now.push_back(*send);
  unsigned events = 0;
  for (; Send* send = now.pop_front(); ++events) {
    const ChannelControl control = send->control;
    sends_.give_back(send);
    deliver_(context_, control);
  }
  return events;
}

/// One peer's want of room does not stop the others.
unsigned ControlSender::poll() noexcept {
  unsigned events = deliver_own();
  for (auto waiting = refused_.begin(); waiting != refused_.end();) {
    Sends& sends = waiting->second;
    while (Send* first = sends.front()) {
      const Status status = post(*first);
      if (status == Status::limit_reached) break;
      sends.remove(*first);
      if (status != Status::in_progress) sends_.give_back(first);
      ++events;
    }
    waiting = sends.empty() ? refused_.erase(waiting) : std::next(waiting);
  }
  if (refused_.empty() && own_.empty()) engine_.pollers().detach(*this);
  return events;
}

}  // namespace brant
