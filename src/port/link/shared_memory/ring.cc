#include "port/link/shared_memory/ring.h"

#include <cassert>
#include <cstring>

#include "base/copy_small.h"

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

}  // namespace

bool RingProducer::slot_free() noexcept {
  if (next_slot_ - freed_slots_ < kSlots) return true;
  freed_slots_ = memory_->freed.slots.load(std::memory_order_acquire);
  return next_slot_ - freed_slots_ < kSlots;
}

std::byte* RingProducer::bulk_room(std::size_t bytes, std::size_t& taken) noexcept {
  const std::size_t offset = next_bulk_ % kBulkBytes;
  taken = bulk_taken(next_bulk_, bytes);
  if (next_bulk_ + taken - freed_bulk_ > kBulkBytes) {
    freed_bulk_ = memory_->freed.bulk.load(std::memory_order_acquire);
    if (next_bulk_ + taken - freed_bulk_ > kBulkBytes) return nullptr;
  }
  return memory_->bulk + (offset + bytes > kBulkBytes ? 0 : offset);
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
  if (header.size() == kLinkHeaderBytes) [[likely]] {
    std::memcpy(slot.header, header.data(), kLinkHeaderBytes);
  } else {
    std::memcpy(slot.header, header.data(), header.size());
  }
  copy_small(target, payload.data(), payload.size());
  // The caller looks next whether the consumer sleeps, and must not look too early.
  const std::uint32_t turn = RingConsumer::turn_of(next_slot_);
  if (fenced_) {
    slot.turn.store(turn, std::memory_order_seq_cst);
  } else {
    slot.turn.store(turn, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
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

RingRecord RingConsumer::read(const Slot& slot) const noexcept {
  const std::size_t bytes = slot.payload_bytes;
  RingRecord record{slot.service, slot.header, {}, slot.service < Links::kServices && bytes <= kLinkPayloadMax};
  if (!record.sound) return record;
  const std::size_t offset = next_bulk_ % kBulkBytes;
  const std::byte* in_bulk = memory_->bulk + (offset + bytes > kBulkBytes ? 0 : offset);
  record.payload = {bytes <= kInlineBytes ? slot.payload : in_bulk, bytes};
  return record;
}

}  // namespace brant::port::peer
