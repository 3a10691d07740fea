#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "port/link.h"

/// A ring of records from one process to one other, in memory that both map. One producer, one consumer.
///
/// Slots of two cache lines carry header and small payloads; larger payloads lie in a second ring of bytes (`bulk`),
/// freed in the order of their slots. A slot is valid when its `turn` has the value of this lap. Slots have fixed
/// places, so what an earlier lap left behind is never mistaken for a turn, and nothing need be cleared: a small record
/// costs one cache line in one direction, and the consumer's position another only when the producer runs out of room.
namespace brant::port::peer {

inline constexpr std::uint32_t kSlots = 256;
inline constexpr std::size_t kBulkBytes = std::size_t{256} << 10;
inline constexpr std::size_t kInlineBytes = 72;
inline constexpr std::size_t kBulkAlign = 64;

struct alignas(128) Slot {
  std::atomic<std::uint32_t> turn;
  std::uint16_t service;
  std::uint16_t reserved;
  std::uint32_t payload_bytes;
  std::uint32_t unused;
  std::byte header[kLinkHeaderBytes];
  std::byte payload[kInlineBytes];
};
static_assert(sizeof(Slot) == 128);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

struct RingMemory {
  /// Written by the consumer: how much it has freed.
  struct alignas(128) Freed {
    std::atomic<std::uint64_t> slots;
    std::atomic<std::uint64_t> bulk;
  };
  /// Written by the producer, once: it has mapped this ring.
  struct alignas(128) Attached {
    std::atomic<std::uint32_t> yes;
  };

  Freed freed;
  Attached attached;
  Slot slots[kSlots];
  alignas(4096) std::byte bulk[kBulkBytes];
  alignas(4096) std::uint64_t flags[512];  ///< See Link::flags_here: beside the ring, written by the producer.
};

/// What a payload takes of the bulk ring at this position: itself and what is skipped at the ring's end; 0: it lies in
/// its slot. Both ends compute it, so that no record says it.
constexpr std::size_t bulk_taken(std::uint64_t position, std::size_t payload_bytes) noexcept {
  if (payload_bytes <= kInlineBytes) return 0;
  const std::size_t offset = position % kBulkBytes;
  const std::size_t skipped = offset + payload_bytes > kBulkBytes ? kBulkBytes - offset : 0;
  return skipped + (payload_bytes + kBulkAlign - 1) / kBulkAlign * kBulkAlign;
}

/// A record as the consumer found it: read once, since it lies in memory that another process writes.
struct RingRecord {
  unsigned service = 0;
  const std::byte* header = nullptr;
  std::span<const std::byte> payload;
  /// False: no producer of ours wrote it, and nothing that follows it can be found.
  bool sound = false;
};

/// The writing end. Zeroed memory is an empty ring.
class RingProducer {
 public:
  /// `fenced`: what this thread does after a push is ordered behind it, for consumers that look at the ring again when
  /// they have said that they will sleep. Costs some ten nanoseconds; not needed if they order a process barrier then.
  explicit RingProducer(RingMemory& memory, bool fenced = true) noexcept : memory_(&memory), fenced_(fenced) {}

  /// False: no room. The record is visible to the consumer when this returns.
  bool push(unsigned service, std::span<const std::byte> header, std::span<const std::byte> payload) noexcept;
  /// The next record is not one of a row: it pays to have the slots of those in one's own cache before they are
  /// written, and costs a lone one 30 ns, since the consumer then looks at a line that it has not.
  void end_row() noexcept { in_a_row_ = 0; }
  [[nodiscard]] bool fenced() const noexcept { return fenced_; }

 private:
  bool slot_free() noexcept;
  void fetch_ahead(std::size_t bulk_bytes) noexcept;
  /// Where a payload of this size may lie in one piece, or null. `taken` is what it costs.
  std::byte* bulk_room(std::size_t bytes, std::size_t& taken) noexcept;

  RingMemory* memory_;
  std::uint64_t next_slot_ = 0;
  std::uint64_t next_bulk_ = 0;
  std::uint64_t freed_slots_ = 0;  ///< As last read.
  std::uint64_t freed_bulk_ = 0;
  unsigned in_a_row_ = 0;  ///< Records since end_row.
  bool fenced_;
};

/// The reading end.
class RingConsumer {
 public:
  explicit RingConsumer(RingMemory& memory) noexcept : memory_(&memory) {}

  /// The oldest record, or null. It stays valid until `pop`.
  const Slot* front() noexcept {
    const Slot& slot = memory_->slots[next_slot_ % kSlots];
    return slot.turn.load(std::memory_order_acquire) == turn_of(next_slot_) ? &slot : nullptr;
  }
  /// As `front`, ordered after everything this thread did before: for the last look before sleeping.
  [[nodiscard]] bool empty_for_sure() const noexcept {
    return memory_->slots[next_slot_ % kSlots].turn.load(std::memory_order_seq_cst) != turn_of(next_slot_);
  }
  /// Reads and checks the record of `front`.
  [[nodiscard]] RingRecord read(const Slot& slot) const noexcept;
  /// Of a sound record.
  void pop(const RingRecord& record) noexcept {
    ++next_slot_;
    next_bulk_ += bulk_taken(next_bulk_, record.payload.size());
  }
  /// Bytes of payload that were popped and not published.
  [[nodiscard]] std::size_t owes() const noexcept { return static_cast<std::size_t>(next_bulk_ - published_bulk_); }
  /// Tells the producer what was popped.
  void publish() noexcept {
    published_bulk_ = next_bulk_;
    memory_->freed.bulk.store(next_bulk_, std::memory_order_release);
    memory_->freed.slots.store(next_slot_, std::memory_order_release);
  }

  /// The turn that marks slot number `number`: another one in each lap, and not that of fresh memory in the first.
  static std::uint32_t turn_of(std::uint64_t number) noexcept {
    return static_cast<std::uint32_t>(number / kSlots) + 1u;
  }

 private:
  RingMemory* memory_;
  std::uint64_t next_slot_ = 0;
  std::uint64_t next_bulk_ = 0;
  std::uint64_t published_bulk_ = 0;
};

}  // namespace brant::port::peer
