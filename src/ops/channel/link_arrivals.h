#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "base/object_pool.h"
#include "brant/base/intrusive_list.h"
#include "brant/base/status.h"
#include "ops/channel/device_slots.h"
#include "ops/channel/link_message.h"
#include "ops/mover/stage_pool.h"

namespace brant {

/// A message (or word of one) that came before its receive.
struct Arrival {
  static constexpr std::size_t kSmallBytes = 128;

  [[nodiscard]] std::byte* bytes() noexcept {
    return lease.data != nullptr ? static_cast<std::byte*>(lease.data) : small.data();
  }

  /// Of a whole message: its bytes.
  [[nodiscard]] std::span<const std::byte> payload() noexcept {
    const bool whole = message.kind == LinkMessage::Kind::eager;
    return {bytes(), whole ? static_cast<std::size_t>(message.bytes) : 0};
  }

  ListHook<Arrival> hook;
  LinkMessage message;
  StagePool::Lease lease;  ///< Of a payload that does not fit into `small`.
  std::array<std::byte, kSmallBytes> small;
};

/// The messages of one end that came before their receives, in the order in which they came.
class LinkArrivals {
 public:
  static constexpr std::size_t kMax = std::size_t{1} << 20;  ///< Of all channels of a process.

  /// `slots`: null where no message can be in one.
  LinkArrivals(ObjectPool<Arrival>& pool, StagePool& buffers, DeviceSlots* slots) noexcept
      : pool_(pool), buffers_(buffers), slots_(slots) {}
  LinkArrivals(const LinkArrivals&) = delete;
  LinkArrivals& operator=(const LinkArrivals&) = delete;
  ~LinkArrivals() {
    while (Arrival* arrival = list_.front()) give_back(*arrival);
  }

  [[nodiscard]] bool empty() const noexcept { return list_.empty(); }
  [[nodiscard]] Arrival* find(std::uint64_t number) noexcept {
    Arrival* arrival = list_.front();
    while (arrival != nullptr && arrival->message.number != number) arrival = list_.next(*arrival);
    return arrival;
  }
  /// Like `find`, for a number that is most likely not there.
  [[nodiscard]] bool has(std::uint64_t number) noexcept { return number < kept_before_ && find(number) != nullptr; }

  /// A copy of `payload` is kept. limit_reached: nothing more can be, of any channel. Others: there is no buffer for
  /// it.
  Status keep(const LinkMessage& message, std::span<const std::byte> payload) noexcept {
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
  /// A message whose bytes are in `payload`, which is the record's from now on. Null: no more can be kept.
  Arrival* keep(const LinkMessage& message, StagePool::Lease payload) noexcept {
    Arrival* arrival = pool_.take();
    if (arrival == nullptr) return nullptr;
    arrival->message = message;
    arrival->lease = payload;
    list_.push_back(*arrival);
    kept_before_ = std::max(kept_before_, message.number + 1);
    return arrival;
  }
  /// Forgets it; its slot of the device is free again.
  void give_back(Arrival& arrival) noexcept {
    list_.remove(arrival);
    if (arrival.message.kind == LinkMessage::Kind::stored && arrival.message.flag != DeviceSlots::kNone) {
      slots_->emptied(arrival.message.flag);
    }
    buffers_.give_back(arrival.lease);
    pool_.give_back(&arrival);
  }

 private:
  ObjectPool<Arrival>& pool_;
  StagePool& buffers_;
  DeviceSlots* slots_;
  IntrusiveList<Arrival, &Arrival::hook> list_;
  std::uint64_t kept_before_ = 0;  ///< `list_` never held this message, nor any after it.
};

}  // namespace brant
