// How an end is closed and opened again. Sources that nobody observes any more are free when it is closed, and what is
// left of both ends in the end are numbers.

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/table.h"

namespace brant {
namespace {

double seconds(std::chrono::nanoseconds time) noexcept { return std::chrono::duration<double>(time).count(); }

}  // namespace

ChannelEndpoint::~ChannelEndpoint() {
  table_.keep(*this);
  engine_.remove_outstanding(peer_, watch_);
}

void ChannelEndpoint::close() noexcept {
  if (!engine_.is_of_this_process()) return;
  closed_ = in_use_ = true;
  table_.note_closed(*this);
  landed_.tell();
  table_.send_control(peer_, {ChannelControl::Kind::closed, id_.value, side_, engine_.job().rank, opened_,
                              landed_.told(), window_.next()});
  end_pending(Status::canceled);
  if (stream_lane_) stream_lane_->close();
  free_sources();
  if (landed_.prefix() != landed_.told()) send_control(ChannelControl::Kind::acknowledge, 0);
  in_use_ = false;
  await_open();
  look_if_closed();
}

void ChannelEndpoint::await_open() noexcept {
  closed_ = true;
  engine_.add_outstanding(peer_, watch_);
}

void ChannelEndpoint::reopen(Path forced) noexcept {
  engine_.remove_outstanding(peer_, watch_);
  closed_ = false;
  ++opened_;
  refused_ = Status::ok;
  forced_ = forced;
  use_link();
}

// What is left of it
// -------------------------------------------------------------------------------------------------------------------

void ChannelEndpoint::resume(const ClosedEnd& before) noexcept {
  opened_there_ = true;
  window_ = SendWindow(before.next_send);
  landed_ = LandedPrefix(before.next_receive);
  next_receive_ = before.next_receive;
  opened_ = before.opened;
}

bool ChannelEndpoint::settled() const noexcept {
  if (!closed_ || in_use_ || live_ops_ != 0) return false;
  if (stream_lane_ || stream_mailbox_ || streams_refused_) return false;
  if (peer_.lost) return true;
  const bool sent = peer_.ended || window_.acknowledged() == window_.next();
  const bool received = !landed_.has_gaps() && landed_.prefix() == landed_.told() && lost_.empty();
  const bool all_came = other_closed_ == 0 || other_sent_ <= landed_.prefix();
  return sent && received && all_came && (link_receiver_ == nullptr || link_receiver_->empty());
}

void ChannelEndpoint::settle() noexcept {
  drop_unread();
  if (settled()) table_.forget_later(*this);
}

void ChannelEndpoint::on_closed(std::uint32_t opened, std::uint64_t sent) noexcept {
  other_closed_ = opened;
  other_sent_ = sent;
  if (landed_.prefix() != landed_.told()) send_control(ChannelControl::Kind::acknowledge, 0);
  look_if_closed();
}

/// What one end sent in its n-th opening is for the other end's n-th, or a later one: once both are over, nobody will
/// receive it. Receives that are still being withdrawn come first: they may have met it.
void ChannelEndpoint::drop_unread() noexcept {
  if (!closed_ || in_use_ || other_closed_ == 0 || other_closed_ > opened_) return;
  const std::uint64_t begin = landed_.prefix();
  if (other_sent_ <= begin || other_sent_ - begin > kWindowMessages) return;
  in_use_ = true;
  for (std::uint64_t number = begin; number < other_sent_; ++number) {
    if (!landed_.has(number) && find_receive(number) == nullptr) drop(number);
  }
  in_use_ = false;
  next_receive_ = std::max(next_receive_, other_sent_);
  if (landed_.prefix() != landed_.told()) send_control(ChannelControl::Kind::acknowledge, 0);
}

void ChannelEndpoint::drop(std::uint64_t number) noexcept {
  const auto lost = find_lost(number);
  const bool is_lost = lost != lost_.end();
  const bool sender_knows = is_lost && lost->sender_knows;
  if (is_lost) lost_.erase(lost);
  std::erase(returned_numbers_, number);
  landed_.landed(number, 0);
  if (!hidden_) ++traffic_.received;
  if (!sender_knows) tell_not_taken(number);
  if (is_lost) return;
  linked_ ? link_receiver_->drop(number) : drain(number);
}

// At the sender
// -------------------------------------------------------------------------------------------------------------------

bool ChannelEndpoint::uses_source(const Transfer& transfer) const noexcept {
  if (transfer.observed() || transfer.buffer.bytes == 0) return false;
  if (transfer.state() == TransferState::staging) return true;
  const bool reads_it = is_on_its_way(transfer.state()) && !transfer.is_staged();
  return reads_it && !nobody_receives();
}

/// By itself, while this call moves the engine: the peer of a test may be moved by the same thread.
bool ChannelEndpoint::comes_free(const Transfer& transfer) noexcept {
  const bool by_device = transfer.state() == TransferState::staging || transfer.state() == TransferState::copying;
  return by_device || peer_.same_process || engine_.runs_elsewhere(peer_);
}

template <typename Matches>
bool ChannelEndpoint::any_under_way(Matches&& matches) const noexcept {
  const Transfer* transfer = under_way_.front();
  while (transfer != nullptr && !matches(*transfer)) transfer = decltype(under_way_)::next(*transfer);
  return transfer != nullptr;
}

void ChannelEndpoint::free_sources() noexcept {
  for (Transfer* transfer = under_way_.front(); transfer != nullptr;) {
    Transfer* following = under_way_.next(*transfer);
    if (uses_source(*transfer)) let_go(*transfer);
    transfer = following;
  }
  wait_for_sources([](void* self) noexcept {
    auto& end = *static_cast<ChannelEndpoint*>(self);
    return !end.any_under_way(
        [&](const Transfer& transfer) { return end.uses_source(transfer) && end.comes_free(transfer); });
  });
}

/// A peer that makes no progress may read a source later; who closed the channel does not wait for ever.
void ChannelEndpoint::wait_for_sources(bool (*done)(void* self) noexcept) noexcept {
  if (done(this)) return;
  SourcePatience& patience = table_.source_patience();
  const TimePoint begin = Clock::now();
  const bool came_free = engine_.wait_quietly(done, this, patience.left(peer_.rank.value));
  const auto waited = Clock::now() - begin;
  patience.waited(peer_.rank.value, waited, came_free);
  if (!came_free) stop_waiting(waited);
}

void ChannelEndpoint::stop_waiting(std::chrono::nanoseconds waited) noexcept {
  for (Transfer* transfer = under_way_.front(); transfer != nullptr;) {
    Transfer* following = under_way_.next(*transfer);
    if (uses_source(*transfer) && linked_ && link_sender_->withdraw_pieces(*transfer)) {
      fail_send(*transfer, Status::canceled);
    } else if (uses_source(*transfer)) {
      log::error(
          "channel {} to rank {} was closed, and after {:.1f} s (of {:.0f} s for all channels to that rank, until it "
          "moves again) message {}, {} bytes of {} memory at {}, may still be read there. Wait for its source_free "
          "before its memory is used again",
          id_.value, peer_.rank.value, seconds(waited), seconds(SourcePatience::kWhole), transfer->number,
          transfer->buffer.bytes, memory_kind_name(transfer->buffer.kind), transfer->buffer.data);
    }
    transfer = following;
  }
}

/// Its owner forgets a send after the channel was closed.
void ChannelEndpoint::give_up_late(Transfer& transfer) noexcept {
  const bool in_use = std::exchange(in_use_, true);
  withdraw(transfer, Status::canceled);
  free_sources();
  in_use_ = in_use;
  look_if_closed();
}

void ChannelEndpoint::let_go(Transfer& transfer) noexcept {
  if (transfer.state() == TransferState::staging) return;
  if (linked_) {
    link_sender_->let_go(transfer);
  } else if (!transfer.let_go) {
    transfer.let_go = true;
    send_control(ChannelControl::Kind::abandoned, transfer.number);
  }
}

// At the receiver
// -------------------------------------------------------------------------------------------------------------------

void ChannelEndpoint::on_abandoned(std::uint64_t number) noexcept {
  if (landed_.has(number) || find_lost(number) != lost_.end() || find_receive(number, true) != nullptr) return;
  if (Transfer* transfer = find_receive(number)) {
    transfer->let_go = true;
  } else {
    take_for_nobody(number);
  }
}

void ChannelEndpoint::take_for_nobody(std::uint64_t number) noexcept {
  remember_lost({number, 0, Status::canceled, true});
  drain(number);
}

void ChannelEndpoint::drain(std::uint64_t number) noexcept {
  Transfer* transfer = take_transfer(false);
  if (transfer == nullptr) return;  // its sender waits for some seconds, and says so
  transfer->drains = true;
  transfer->number = number;
  if (tag_recv(*transfer, Buffer(nullptr, 0, MemoryKind::host)) == Status::in_progress) {
    engine_.add_outstanding(peer_, *transfer);
  } else {
    release(*transfer);
  }
}

}  // namespace brant
