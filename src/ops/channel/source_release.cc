#include "ops/channel/source_release.h"

#include "base/log.h"
#include "base/seconds.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/table.h"

namespace brant {
namespace {

/// `visit` may end a send.
template <typename Visit>
void for_each(ChannelSends::Transfers& sends, Visit&& visit) noexcept {
  for (Transfer* transfer = sends.front(); transfer != nullptr;) {
    Transfer* following = sends.next(*transfer);
    visit(*transfer);
    transfer = following;
  }
}

}  // namespace

/// A peer that makes no progress may read a source later; who closed the channel does not wait for ever.
void SourceRelease::run() noexcept {
  for_each(end_.sends().under_way(), [this](Transfer& transfer) noexcept {
    if (uses_source(transfer)) end_.sends().let_go(transfer);
  });
  if (is_done()) return;
  SourcePatience& patience = end_.table().source_patience();
  const std::int32_t peer = end_.peer().rank.value;
  const auto done = [](void* self) noexcept { return static_cast<SourceRelease*>(self)->is_done(); };
  const TimePoint begin = Clock::now();
  const bool came_free = end_.engine().waiting().wait_quietly(done, this, patience.left(peer));
  const auto waited = Clock::now() - begin;
  patience.waited(peer, waited, came_free);
  if (!came_free) give_up(waited);
}

bool SourceRelease::uses_source(const Transfer& transfer) const noexcept {
  if (transfer.observed() || transfer.buffer.bytes == 0) return false;
  if (transfer.state() == TransferState::staging) return true;
  const bool reads_it = is_on_its_way(transfer.state()) && !transfer.is_staged();
  return reads_it && !end_.closing().nobody_receives();
}

/// By itself, while this call moves the engine: the peer of a test may be moved by the same thread.
bool SourceRelease::comes_free(const Transfer& transfer) const noexcept {
  const bool by_device = transfer.state() == TransferState::staging || transfer.state() == TransferState::copying;
  return by_device || end_.peer().same_process || end_.engine().peers().runs_elsewhere(end_.peer());
}

bool SourceRelease::is_done() const noexcept {
  const ChannelSends::Transfers& sends = end_.sends().under_way();
  const Transfer* transfer = sends.front();
  while (transfer != nullptr && !(uses_source(*transfer) && comes_free(*transfer))) transfer = sends.next(*transfer);
  return transfer == nullptr;
}

void SourceRelease::give_up(std::chrono::nanoseconds waited) noexcept {
  for_each(end_.sends().under_way(), [&](Transfer& transfer) noexcept {
    if (!uses_source(transfer)) return;
    if (transfer.state() == TransferState::pieces && end_.link_sender()->withdraw(transfer)) {
      return end_.sends().fail(transfer, Status::canceled);
    }
    log::error(
        "channel {} to rank {} was closed, and after {:.1f} s (of {:.0f} s for all channels to that rank, until it "
        "moves again) message {}, {} bytes of {} memory at {}, may still be read there. Wait for its source_free "
        "before its memory is used again",
        end_.id().value, end_.peer().rank.value, in_seconds(waited), in_seconds(SourcePatience::kWhole),
        transfer.number, transfer.buffer.bytes, memory_kind_name(transfer.buffer.kind), transfer.buffer.data);
  });
}

}  // namespace brant
