#include "ops/channel/posted_receives.h"

#include <utility>

#include "ops/channel/endpoint.h"

namespace brant {

/// Where this end would take the network, the other one most likely does too, and asks if not.
bool PostedReceives::is_to_be_told(const Transfer& transfer) const noexcept {
  const Buffer& target = transfer.here;
  const bool wanted = !host_accessible(target.kind) || (target.bytes > kEagerBytes && !offers_come_);
  return wanted && transfer.path != Path::ucx && transfer.state() == TransferState::posted;
}

void PostedReceives::tell_untold() noexcept {
  while (untold_ != nullptr && known_ < kAnnouncedMax) {
    Transfer& transfer = *std::exchange(untold_, Receives::next(*untold_));
    if (is_to_be_told(transfer)) announce(transfer);
  }
}

void PostedReceives::announce(Transfer& transfer, LinkMessage::Kind as, LinkMessage::Place place) noexcept {
  transfer.become(TransferState::announced);
  ++known_;
  tell_landing(transfer, as, place);
}

/// Where host memory is a sender wants to know whose device may write there, in one run.
void PostedReceives::tell_landing(Transfer& transfer, LinkMessage::Kind as, LinkMessage::Place place) noexcept {
  LinkMessage message = end_.link_message(as, transfer);
  message.bytes = transfer.here.bytes;
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

}  // namespace brant
