#include "ops/channel/posted_receives.h"

#include <cassert>
#include <utility>

#include "ops/channel/endpoint.h"
#include "ops/channel/shaped.h"
#include "ops/channel/table.h"

namespace brant {

void PostedReceives::remove(Transfer& transfer) noexcept {
  if (untold_ == &transfer) untold_ = Receives::next(transfer);
  (transfer.ghost ? ghosts_ : receives_).remove(transfer);
  pump_.flags().let_go(transfer);
  if (transfer.state() != TransferState::posted) --known_;
  if (transfer.state() == TransferState::pulling) static_cast<void>(end_.table().mover().withdraw(*transfer.move));
  transfer.become(TransferState::carried);
  assert((!empty() || (known_ == 0 && untold_ == nullptr)) && "the sender knows of receives that there are");
}

// The sender is told
// ----------------------------------------------------------------------------------------------------------------

/// Where this end would take the network, the other one most likely does too, and asks if not.
bool PostedReceives::is_to_be_told(const Transfer& transfer) const noexcept {
  const Buffer& target = transfer.here;
  const bool wanted = !host_accessible(target.kind) || (target.bytes > kEagerBytes && !offers_come_);
  return wanted && transfer.path != Path::ucx && transfer.state() == TransferState::posted;
}

void PostedReceives::tell_untold() noexcept {
  while (untold_ != nullptr && known_ < tuned::kAnnouncedMax) {
    Transfer& transfer = *std::exchange(untold_, Receives::next(*untold_));
    if (is_to_be_told(transfer)) tell_landing(transfer, LinkMessage::Kind::landing, LinkMessage::Place::host);
  }
}

void PostedReceives::answer(Transfer& transfer, const LinkMessage& ask) noexcept {
  const bool offered = ask.place == LinkMessage::Place::mapped;
  tell_landing(transfer, offered ? LinkMessage::Kind::declined : LinkMessage::Kind::landing, ask.place);
}

/// `place`: of the message, as its sender says. Where host memory is a sender wants to know whose device may write
/// there, in one run.
void PostedReceives::tell_landing(Transfer& transfer, LinkMessage::Kind as, LinkMessage::Place place) noexcept {
  if (transfer.state() == TransferState::posted) {
    transfer.become(TransferState::announced);
    ++known_;
  }
  LinkMessage message = end_.link_message(as, transfer);
  const Buffer& target = transfer.here;
  const bool on_host = host_accessible(target.kind);
  if (!on_host && pump_.describe(target.data, message, transfer.buffer_id) != Status::ok) {
    message.place = LinkMessage::Place::other;
  }
  const bool one_run = !transfer.is_staged() && !transfer.here_is_shaped();
  if (on_host && one_run && place == LinkMessage::Place::other && !transfer.ghost) {
    transfer.by_device = pump_.describe(target.data, message) == Status::ok;
  }
  if (!on_host && message.place == LinkMessage::Place::mapped && transfer.flag == LandingFlags::kNone &&
      !transfer.ghost) {
    pump_.flags().watch(transfer);
  }
  message.flag = transfer.flag;
  pump_.control(message);
}

// Ghosts
// ----------------------------------------------------------------------------------------------------------------

void PostedReceives::become_ghost(Transfer& transfer) noexcept {
  if (untold_ == &transfer) untold_ = Receives::next(transfer);
  receives_.remove(transfer);
  transfer.ghost = true;
  ghosts_.push_back(transfer);
  end_.receives().return_turn(transfer);
  if (is_coming(transfer.state())) divert(transfer, transfer.wire().bytes);
}

void PostedReceives::divert(Transfer& ghost, std::uint64_t message_bytes) noexcept {
  if (ghost.is_staged()) return;  // it comes into a buffer of ours anyway
  const auto bytes = static_cast<std::size_t>(message_bytes);
  const bool kept = end_.moves().lease_stage(ghost, bytes) == Status::ok;  // if not, who hands it over says so
  ghost.here = kept ? ghost.staged(bytes) : Buffer(nullptr, bytes, MemoryKind::pinned);
  std::size_t come = 0;
  if (ghost.state() == TransferState::landing) come = static_cast<std::size_t>(ghost.moved);
  if (ghost.state() == TransferState::pulling) come = end_.table().mover().redirect(*ghost.move, ghost.here.data);
  if (kept && come != 0) copy_out(ghost, 0, {static_cast<std::byte*>(ghost.here.data), come});
}

}  // namespace brant
