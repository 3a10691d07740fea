#include "ops/channel/link_arrivals.h"

#include <cstring>

namespace brant {

Status LinkArrivals::keep(const LinkMessage& message, std::span<const std::byte> payload) noexcept {
  StagePool::Lease lease;
  if (payload.size() > Arrival::kSmallBytes) {
    const Result<StagePool::Lease> taken = buffers_.take(payload.size());
    if (!taken) return taken.status();
    lease = *taken;
  }
  Arrival* arrival = keep(message, lease);
  if (arrival == nullptr) {
    buffers_.give_back(lease);
    return pool_.refusal();
  }
  if (!payload.empty()) std::memcpy(arrival->bytes(), payload.data(), payload.size());
  return Status::ok;
}

Arrival* LinkArrivals::keep(const LinkMessage& message, StagePool::Lease payload) noexcept {
  Arrival* arrival = pool_.take();
  if (arrival == nullptr) return nullptr;
  arrival->message = message;
  arrival->lease = payload;
  list_.push_back(*arrival);
  kept_before_ = std::max(kept_before_, message.number + 1);
  return arrival;
}

void LinkArrivals::give_back(Arrival& arrival) noexcept {
  list_.remove(arrival);
  if (arrival.message.kind == LinkMessage::Kind::stored && arrival.message.flag != DeviceSlots::kNone) {
    slots_->emptied(arrival.message.flag);
  }
  buffers_.give_back(arrival.lease);
  pool_.give_back(&arrival);
}

}  // namespace brant
