#include "ops/channel/closing.h"

#include <utility>

#include "base/log.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/table.h"

namespace brant {

ChannelClosing::ChannelClosing(ChannelEndpoint& end) noexcept : end_(end) {
  lost = [](PeerOp& self) noexcept { static_cast<ChannelClosing&>(self).look(); };
}

ChannelClosing::~ChannelClosing() { end_.peer().remove_outstanding(*this); }

void ChannelClosing::close() noexcept {
  if (!end_.engine().is_of_this_process()) return;
  closed_ = in_use_ = true;
  end_.table().note_closed(end_);
  end_.send_control(ChannelControl::Kind::closed, end_.sends().begun(), Status::ok, opened_);
  end_.records().withdraw(Status::canceled);
  release_sources(end_);
  end_.receives().tell_progress();
  in_use_ = false;
  await_open();
  look();
}

void ChannelClosing::await_open() noexcept {
  closed_ = true;
  end_.peer().add_outstanding(*this);
}

void ChannelClosing::reopen() noexcept {
  end_.peer().remove_outstanding(*this);
  closed_ = false;
  ++opened_;
}

void ChannelClosing::resume(const ClosedEnd& before) noexcept {
  opened_there_ = true;
  end_.sends().resume(before.next_send);
  end_.receives().resume(before.next_receive);
  opened_ = before.opened;
}

void ChannelClosing::on_closed(std::uint32_t opened, std::uint64_t sent) noexcept {
  other_closed_ = opened;
  other_sent_ = sent;
  end_.receives().tell_progress();
  look();
}

bool ChannelClosing::nobody_receives() const noexcept { return end_.peer().ended && !opened_there_; }

void ChannelClosing::on_ended(bool was_send) noexcept {
  if (was_send && !in_use_) end_.shared().patience.heard_from();
  settle();
}

void ChannelClosing::give_up_late(Transfer& transfer) noexcept {
  const bool in_use = std::exchange(in_use_, true);
  end_.sends().withdraw(transfer, Status::canceled);
  release_sources(end_);
  in_use_ = in_use;
  look();
}

void ChannelClosing::end_if_known() noexcept {
  const ChannelPeer& known = end_.shared();
  if (end_.peer().same_process || !known.has_said_all()) return;
  const auto word = known.sent_there.find(side_key(end_.id(), 1 - end_.side()));
  // An end of which only its numbers were left said nothing: all that it had sent was received.
  const std::uint64_t sent = word == known.sent_there.end() ? end_.receives().prefix() : word->second;
  const std::size_t ended = end_.receives().end_after(sent);
  look();
  if (ended == 0 || end_.hidden()) return;
  log::warn(
      "channel {}: the program of rank {} (pid {}) has ended normally. It sent {} messages here; what waits for "
      "others, or to be received there, ends with peer_lost",
      end_.id().value, end_.peer().rank.value, end_.peer().record.pid, sent);
}

// What is left of it
// -------------------------------------------------------------------------------------------------------------------

bool ChannelClosing::settled() const noexcept {
  if (!closed_ || in_use_ || !end_.records().none()) return false;
  if (end_.peer().lost) return true;
  const bool sent = end_.peer().ended || end_.sends().all_acknowledged();
  const bool all_came = !is_closed_there() || other_sent_ <= end_.receives().prefix();
  const LinkReceiver* link = end_.link_receiver();
  return sent && all_came && end_.receives().settled() && (link == nullptr || link->empty());
}

ClosedEnd ChannelClosing::rest() const noexcept { return {end_.sends().begun(), end_.receives().prefix(), opened_}; }

void ChannelClosing::settle() noexcept {
  drop_unread();
  if (settled()) end_.table().forget_later(end_);
}

/// What one end sent in its n-th opening is for the other end's n-th, or a later one: once both are over, nobody will
/// receive it. Receives that are still being withdrawn come first: they may have met it.
void ChannelClosing::drop_unread() noexcept {
  if (!closed_ || in_use_ || !is_closed_there() || other_closed_ > opened_) return;
  in_use_ = true;
  end_.receives().drop_before(other_sent_);
  in_use_ = false;
}

}  // namespace brant
