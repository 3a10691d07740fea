#include "base/copy_small.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/receives.h"
#include "ops/channel/table.h"

namespace brant {

bool ChannelSmallReceives::suits(const Buffer& landing) const noexcept {
  const Path forced = end_.paths().forced();
  const bool simple = end_.linked() && landing.bytes <= kEagerBytes && host_accessible(landing.kind) &&
                      (forced == Path::automatic || forced == Path::shm);
  return simple && end_.receives().in_turn() && !end_.peer().lost && end_.engine().trace() == nullptr;
}

Status ChannelSmallReceives::receive(Buffer landing, Op& op) noexcept {
  const std::uint64_t number = end_.receives().turns().next();
  if (!end_.link_receiver()->arrivals().has(number)) return await(number, landing, op);
  return take_arrived(number, landing, op) ? Status::ok : Status::not_supported;
}

bool ChannelSmallReceives::take_arrived(std::uint64_t number, Buffer landing, Op& op) noexcept {
  LinkArrivals& arrivals = end_.link_receiver()->arrivals();
  Arrival* arrival = arrivals.find(number);
  if (arrival == nullptr) return false;
  const LinkMessage& message = arrival->message;
  if (message.kind != LinkMessage::Kind::eager || message.bytes > landing.bytes) return false;
  const auto bytes = static_cast<std::size_t>(message.bytes);
  const bool acknowledged = message.acknowledged;
  copy_small(landing.data, arrival->bytes(), bytes);
  arrivals.give_back(*arrival);
  ++end_.table().traffic().moves;
  op.result.bytes = bytes;
  static_cast<void>(end_.receives().turns().take());
  end_.receives().count_small(number, bytes, acknowledged);
  return true;
}

Status ChannelSmallReceives::await(std::uint64_t number, Buffer landing, Op& op) noexcept {
  if (!end_.receives().turns().can_take(end_.receives().prefix())) [[unlikely]]
    return Status::no_memory;
  SmallReceive* receive = end_.records().take_small();
  if (receive == nullptr) return end_.table().pools().small_receives.refusal();
  static_cast<void>(end_.receives().turns().take());
  receive->number = number;
  receive->buffer = landing;
  waiting_.push_back(*receive);
  end_.records().attach(*receive, op);
  return Status::in_progress;
}

bool ChannelSmallReceives::land(std::uint64_t number, std::span<const std::byte> payload, bool acknowledged) noexcept {
  SmallReceive* receive = find(number);
  if (receive == nullptr || payload.size() > receive->buffer.bytes) return false;
  copy_small(receive->buffer.data, payload.data(), payload.size());
  end_.receives().count_small(number, payload.size(), acknowledged);
  end_.engine().completions().finish(*receive, {Status::ok, payload.size()});
  give_back(*receive);
  return true;
}

Transfer* ChannelSmallReceives::grow(SmallReceive& receive) noexcept {
  Transfer* transfer = end_.records().take(false);
  if (transfer == nullptr) {
    withdraw(receive, end_.table().pools().transfers.refusal());
    return nullptr;
  }
  transfer->number = receive.number;
  transfer->buffer = receive.buffer;
  transfer->posted_at = receive.posted_at;
  transfer->path = Path::shm;
  transfer->take_over(receive);
  end_.peer().add_outstanding(*transfer);
  give_back(receive);
  return transfer;
}

/// Nobody was told of it, so it ends here and now.
void ChannelSmallReceives::withdraw(SmallReceive& receive, Status why) noexcept {
  end_.receives().turns().give_back(receive.number);
  end_.engine().completions().finish(receive, {end_.peer().lost ? Status::peer_lost : why, 0});
  give_back(receive);
}

void ChannelSmallReceives::give_back(SmallReceive& receive) noexcept {
  waiting_.remove(receive);
  end_.records().give_back(receive);
}

}  // namespace brant
