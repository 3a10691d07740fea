#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ops/am/message.h"

namespace brant::am {

/// Lends blocks for messages and keeps them: no allocation in steady state. Those above 4 KiB have four sizes between
/// two powers of two, and come from the region that other processes map while it has room, else from the heap, of which
/// a bounded amount is kept: fresh pages cost more than the copy into them. What bounds the number lent is the credit
/// of those who send.
class MessagePool {
 public:
  static constexpr std::array<std::size_t, 3> kBlockBytes{256, 1024, 4096};
  /// A message's payload lies so far behind it.
  static constexpr std::size_t kRecordBytes = (sizeof(Message) + 15) / 16 * 16;
  static constexpr std::size_t kKeptLargeBytes = std::size_t{64} << 20;

  MessagePool() = default;
  ~MessagePool();
  MessagePool(const MessagePool&) = delete;
  MessagePool& operator=(const MessagePool&) = delete;

  /// No memory holds more; what says so is damaged.
  static constexpr std::size_t kPayloadMax = std::size_t{1} << 46;

  /// A message with room for `payload_bytes` behind it, contents undefined; null when memory is exhausted, or for more
  /// than kPayloadMax.
  Message* take(std::size_t payload_bytes) noexcept;
  void give(Message& message) noexcept;
  /// From now on large blocks come from here while there is room. Once; it outlives the pool.
  void use_region(std::span<std::byte> region) noexcept { region_ = region; }
  /// Where a message and its payload lie in the region; nothing if they do not.
  [[nodiscard]] std::optional<std::size_t> place_of(const Message& message) const noexcept;
  /// Blocks of a region, of any process, begin at such places.
  [[nodiscard]] static bool may_begin_at(std::size_t place) noexcept;
  /// The other way round; null for no place of the region.
  [[nodiscard]] Message* at(std::size_t place) const noexcept;
  [[nodiscard]] std::size_t lent() const noexcept { return lent_; }

 private:
  static constexpr std::size_t kLargeSizes = 4 * 52;

  struct Free {
    Free* next;
  };
  struct Slab {
    void operator()(std::byte* bytes) const noexcept { ::operator delete(bytes, std::align_val_t{64}); }
  };

  bool grow(std::size_t size_class) noexcept;
  void* take_large(std::size_t large_class) noexcept;
  void* take_from_region(std::size_t bytes, std::size_t large_class) noexcept;
  [[nodiscard]] bool in_region(const void* block) const noexcept;
  void give_large(void* block, std::size_t large_class) noexcept;

  std::array<Free*, kBlockBytes.size()> free_{};
  std::vector<std::unique_ptr<std::byte, Slab>> slabs_;
  std::array<Free*, kLargeSizes> large_free_{};
  std::size_t kept_large_bytes_ = 0;
  std::span<std::byte> region_;
  std::size_t region_used_ = 0;  ///< Bytes that were given out once.
  std::array<Free*, kLargeSizes> region_free_{};
  std::size_t lent_ = 0;
};

}  // namespace brant::am
