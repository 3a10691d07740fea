#include "ops/channel/device_slots.h"

#include <algorithm>
#include <new>

#include "base/log.h"
#include "ops/channel/endpoint.h"
#include "ops/channel/link_pump.h"

namespace brant {
namespace {

constexpr std::size_t kSlotBytes = kEagerBytes;

constexpr std::size_t place_of(std::uint16_t slot) noexcept { return (slot - 1u) * kSlotBytes; }

}  // namespace

DeviceSlots::~DeviceSlots() {
  engine_.pollers().detach(*this);
  if (here_ != nullptr) static_cast<void>(engine_.device().free(here_));
}

void DeviceSlots::offer() noexcept {
  if (std::exchange(offered_, true)) return;
  const MemoryKind kind = engine_.peers().mutual_kind(peer_);
  if (kind == MemoryKind::detect) return;
  const Result<void*> memory = engine_.device().allocate(kind, kSlots * kSlotBytes);
  if (memory) here_ = static_cast<std::byte*>(*memory);  // kept in any case: nothing is freed in progress
  LinkMessage message;
  message.kind = LinkMessage::Kind::slots;
  const Status status = memory.ok() ? pump_.describe(*memory, message) : memory.status();
  if (status != Status::ok) {
    log::info("no slots for small messages of rank {} in {} memory ({}): their senders wait for the receives",
              peer_.rank.value, memory_kind_name(kind), status_text(status));
    return;
  }
  pump_.control(message);
}

bool DeviceSlots::can_hold(std::uint16_t slot, std::uint64_t bytes) const noexcept {
  return here_ != nullptr && slot != kNone && slot <= kSlots && bytes <= kSlotBytes;
}

const std::byte* DeviceSlots::at(std::uint16_t slot) const noexcept { return here_ + place_of(slot); }

void DeviceSlots::emptied(std::uint16_t slot) noexcept {
  LinkMessage message;
  message.kind = LinkMessage::Kind::slot_emptied;
  message.flag = slot;
  pump_.control(message);
}

void DeviceSlots::on_offered(const LinkMessage& message) noexcept {
  if (there_.address != nullptr || offer_) return;  // they are where they are
  offer_ = message;
  map();
}

/// Again before each use, until the peer has handed over what they are mapped by means of.
void DeviceSlots::map() noexcept {
  const LinkMessage message = *offer_;
  there_ = pump_.mappings().imports.take(message.buffer_id, message.offset, kSlots * kSlotBytes, Reach::device);
  if (there_.address == nullptr && pump_.mappings().imports.awaits(message.buffer_id)) return;
  offer_.reset();
  if (there_.address == nullptr) return;
  try {
    free_.reserve(kSlots);
    for (std::uint16_t slot = kSlots; slot != kNone; --slot) free_.push_back(slot);
  } catch (const std::bad_alloc&) {
    log::debug("no memory to remember the slots of rank {}: messages to it wait for their receives", peer_.rank.value);
  }
  watch();
}

void DeviceSlots::on_emptied(std::uint16_t slot) noexcept {
  const bool taken = there_.address != nullptr && slot != kNone && slot <= kSlots &&
                     std::find(free_.begin(), free_.end(), slot) == free_.end();
  if (!taken) {
    return engine_.peers().distrust(peer_, "word of a slot emptied that no message of this process is in");
  }
  give_back(slot);
}

void DeviceSlots::give_back(std::uint16_t slot) noexcept {
  free_.push_back(slot);  // there is room for all of them
  watch();
}

std::byte* DeviceSlots::there(std::uint16_t slot) const noexcept { return there_.address + place_of(slot); }

void DeviceSlots::await(Transfer& transfer) noexcept {
  if (offer_) map();
  transfer.asked_at = Clock::now();
  waiting_.push_back(transfer);
  watch();
}

void DeviceSlots::forget(Transfer& transfer) noexcept {
  if (!waiting_.linked(transfer)) return;
  waiting_.remove(transfer);
  watch();
}

void DeviceSlots::watch() noexcept {
  if (waiting_.empty() || free_.empty()) {
    engine_.pollers().detach(*this);
  } else {
    engine_.pollers().attach(*this);
  }
}

unsigned DeviceSlots::poll() noexcept {
  unsigned gone = 0;
  const TimePoint now = Clock::now();
  for (Transfer* transfer = waiting_.front(); transfer != nullptr && !free_.empty(); transfer = waiting_.front()) {
    if (now - transfer->asked_at < tuned::kLate) break;
    waiting_.remove(*transfer);
    const std::uint16_t slot = free_.back();
    if (!transfer->endpoint.link_sender()->send_early(*transfer, slot)) continue;
    free_.pop_back();
    ++gone;
  }
  watch();
  return gone;
}

}  // namespace brant
