#include "port/wire/peer/ring.h"

#include <cassert>
#include <cstring>

namespace brant::port::peer {
namespace {

/// Fetches lines that will be written soon. For x86-64 in general the compiler's own word for that fetches for reading.
void fetch_for_writing(std::byte* memory, std::size_t bytes) noexcept {
  for (std::size_t offset = 0; offset < bytes; offset += 64) {
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(memory[offset]));
#else
    __builtin_prefetch(memory + offset, 1);
#endif
  }
}

constexpr std::size_t aligned(std::size_t bytes) noexcept { return (bytes + kBulkAlign - 1) / kBulkAlign * kBulkAlign; }

}  // namespace

bool RingProducer::slot_free() noexcept {
  if (next_slot_ - freed_slots_ < kSlots) return true;
  freed_slots_ = memory_->freed.slots.load(std::memory_order_acquire);
  return next_slot_ - freed_slots_ < kSlots;
}

std::byte* RingProducer::bulk_room(std::size_t bytes, std::size_t& taken) noexcept {
  const std::size_t offset = next_bulk_ % kBulkBytes;
  const std::size_t skipped = offset + bytes > kBulkBytes ? kBulkBytes - offset : 0;
  taken = skipped + aligned(bytes);
  if (next_bulk_ + taken - freed_bulk_ > kBulkBytes) {
    freed_bulk_ = memory_->freed.bulk.load(std::memory_order_acquire);
    if (next_bulk_ + taken - freed_bulk_ > kBulkBytes) return nullptr;
  }
  return memory_->bulk + (skipped != 0 ? 0 : offset);
}

bool RingProducer::push(unsigned service, std::span<const std::byte> header,
                        std::span<const std::byte> payload) noexcept {
  assert(header.size() <= kLinkHeaderBytes && payload.size() <= kLinkPayloadMax);
  if (!slot_free()) return false;
  Slot& slot = memory_->slots[next_slot_ % kSlots];
  std::size_t taken = 0;
  std::byte* target = slot.payload;
  if (payload.size() > kInlineBytes && (target = bulk_room(payload.size(), taken)) == nullptr) return false;
  slot.service = static_cast<std::uint16_t>(service);
  slot.payload_bytes = static_cast<std::uint32_t>(payload.size());
  slot.bulk_bytes = static_cast<std::uint32_t>(taken);
  std::memcpy(slot.header, header.data(), header.size());
  if (!payload.empty()) std::memcpy(target, payload.data(), payload.size());
  // Sequentially consistent: the caller looks next whether the consumer sleeps, and must not look too early.
  slot.turn.store(RingConsumer::turn_of(next_slot_), std::memory_order_seq_cst);
  ++next_slot_;
  next_bulk_ += taken;
  // Others will follow. Not the very next one: that is the one the consumer looks at.
  if (in_a_row_++ != 0) fetch_ahead(taken);
  return true;
}

/// For the record after the next one, since the consumer looks at the next one; records of a row are mostly of one
/// size.
void RingProducer::fetch_ahead(std::size_t bulk_bytes) noexcept {
  constexpr std::size_t kFetchedMax = 1024;  // more lines than a core can wait for at once
  fetch_for_writing(reinterpret_cast<std::byte*>(&memory_->slots[(next_slot_ + 1) % kSlots]), sizeof(Slot));
  const std::size_t offset = next_bulk_ % kBulkBytes + bulk_bytes;
  if (bulk_bytes <= kFetchedMax && offset + bulk_bytes <= kBulkBytes)
    fetch_for_writing(memory_->bulk + offset, bulk_bytes);
}

std::span<const std::byte> RingConsumer::payload(const Slot& slot) const noexcept {
  if (slot.bulk_bytes == 0) return {slot.payload, slot.payload_bytes};
  const std::size_t offset = next_bulk_ % kBulkBytes;
  const bool skipped = offset + slot.payload_bytes > kBulkBytes;
  return {memory_->bulk + (skipped ? 0 : offset), slot.payload_bytes};
}

}  // namespace brant::port::peer
