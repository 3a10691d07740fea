#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "ops/am/message.h"

namespace brant::am {

/// Lends blocks for messages in a few sizes and keeps them: no allocation in steady state up to 16 KiB. Larger blocks
/// come from the heap in powers of two, and some of them are kept too: fresh pages cost more than the copy into them.
/// What bounds the number lent is the credit of those who send.
class MessagePool {
 public:
  static constexpr std::array<std::size_t, 4> kBlockBytes{256, 1024, 4096, 16384};
  static constexpr std::size_t kKeptLargeBytes = std::size_t{64} << 20;

  MessagePool() = default;
  ~MessagePool();
  MessagePool(const MessagePool&) = delete;
  MessagePool& operator=(const MessagePool&) = delete;

  /// A message with room for `payload_bytes` behind it, contents undefined; null when memory is exhausted.
  Message* take(std::size_t payload_bytes) noexcept;
  void give(Message& message) noexcept;
  [[nodiscard]] std::size_t lent() const noexcept { return lent_; }

 private:
  struct Free {
    Free* next;
  };
  struct Slab {
    void operator()(std::byte* bytes) const noexcept { ::operator delete(bytes, std::align_val_t{64}); }
  };

  bool grow(std::size_t size_class) noexcept;
  void* take_large(std::size_t bytes, std::size_t& size_class) noexcept;
  void give_large(void* block, std::size_t size_class) noexcept;

  std::array<Free*, kBlockBytes.size()> free_{};
  std::vector<std::unique_ptr<std::byte, Slab>> slabs_;
  std::array<Free*, 64> large_free_{};  ///< By the logarithm of their size.
  std::size_t kept_large_bytes_ = 0;
  std::size_t lent_ = 0;
};

}  // namespace brant::am
