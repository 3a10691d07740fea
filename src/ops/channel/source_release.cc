#include "base/log.h"
#include "base/seconds.h"
#include "ops/channel/closing.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/table.h"

namespace brant {
namespace {

/// `visit` may end a send.
template <typename Visit>
void for_each_send(ChannelEndpoint& end, Visit&& visit) noexcept {
  ChannelSends::Transfers& sends = end.sends().under_way();
  for (Transfer* transfer = sends.front(); transfer != nullptr;) {
    Transfer* following = sends.next(*transfer);
    visit(*transfer);
    transfer = following;
  }
}

bool uses_source(ChannelEndpoint& end, const Transfer& transfer) noexcept {
  if (transfer.observed() || transfer.buffer.bytes == 0) return false;
  if (transfer.state() == TransferState::staging) return true;
  const bool reads_it = is_on_its_way(transfer.state()) && !transfer.is_staged();
  return reads_it && !end.closing().nobody_receives();
}

/// By itself, while this call moves the engine: the peer of a test may be moved by the same thread.
bool comes_free(ChannelEndpoint& end, const Transfer& transfer) noexcept {
  const bool by_device = transfer.state() == TransferState::staging || transfer.state() == TransferState::copying;
  return by_device || end.peer().same_process || end.engine().peers().runs_elsewhere(end.peer());
}

bool is_done(ChannelEndpoint& end) noexcept {
  bool done = true;
  for_each_send(end, [&](const Transfer& transfer) noexcept {
    done = done && !(uses_source(end, transfer) && comes_free(end, transfer));
  });
  return done;
}

void give_up(ChannelEndpoint& end, std::chrono::nanoseconds waited) noexcept {
  for_each_send(end, [&](Transfer& transfer) noexcept {
    if (!uses_source(end, transfer)) return;
    if (transfer.state() == TransferState::pieces && end.link_sender()->withdraw(transfer)) {
      return end.sends().fail(transfer, Status::canceled);
    }
    log::error(
        "channel {} to rank {} was closed, and after {:.1f} s (of {:.0f} s for all channels to that rank, until it "
        "moves again) message {}, {} bytes of {} memory at {}, may still be read there. Wait for its source_free "
        "before its memory is used again",
        end.id().value, end.peer().rank.value, in_seconds(waited), in_seconds(SourcePatience::kWhole), transfer.number,
        transfer.buffer.bytes, memory_kind_name(transfer.buffer.kind), transfer.buffer.data);
  });
}

}  // namespace

/// A peer that makes no progress may read a source later; who closed the channel does not wait for ever.
void release_sources(ChannelEndpoint& end) noexcept {
  for_each_send(end, [&](Transfer& transfer) noexcept {
    if (uses_source(end, transfer)) end.sends().let_go(transfer);
  });
  if (is_done(end)) return;
  SourcePatience& patience = end.shared().patience;
  const auto done = [](void* self) noexcept { return is_done(*static_cast<ChannelEndpoint*>(self)); };
  const TimePoint begin = Clock::now();
  const bool came_free = end.engine().waiting().wait_quietly(done, &end, patience.left());
  const auto waited = Clock::now() - begin;
  patience.waited(waited, came_free);
  if (!came_free) give_up(end, waited);
}

}  // namespace brant
