#pragma once

#include <array>
#include <cstddef>
#include <map>

#include "base/spares.h"
#include "brant/base/result.h"
#include "core/engine.h"

namespace brant {

/// Pinned host buffers for the staged path, kept for reuse: page-locking costs far more than any copy. Those below
/// kSlabBytes are parts of slabs: each allocation is a file that other processes can map, and a process has few of
/// those. What is kept beyond a bound is freed, a slab when none of its parts is lent.
class StagePool final : private DeferredWork {
 public:
  struct Lease {
    void* data = nullptr;
    std::size_t bytes = 0;  ///< Capacity: a power of two.
  };

  explicit StagePool(Engine& engine, std::size_t kept_bytes_max = kKeptBytesMax) noexcept
      : engine_(engine), device_(engine.device()), kept_bytes_max_(kept_bytes_max) {}
  StagePool(const StagePool&) = delete;
  StagePool& operator=(const StagePool&) = delete;
  ~StagePool();

  Result<Lease> take(std::size_t bytes) noexcept;
  void give_back(Lease lease) noexcept;
  /// Not lent.
  [[nodiscard]] std::size_t kept_bytes() const noexcept { return kept_bytes_; }

 private:
  struct Slab {
    std::size_t part = 0;  ///< Bytes of each,
    std::size_t parts = 0;
    std::size_t lent = 0;  ///< and how many of them are.
  };
  using Slabs = std::map<std::byte*, Slab>;  ///< By their first byte.

  static constexpr std::size_t kSmallest = 4096;
  static constexpr std::size_t kSlabPower = 22;
  static constexpr std::size_t kSlabBytes = std::size_t{1} << kSlabPower;
  static constexpr std::size_t kKeptBytesMax = std::size_t{2} << 30;

  [[nodiscard]] Spares<void*>& spares_of(std::size_t capacity) noexcept;
  /// What a buffer is a part of.
  [[nodiscard]] Slabs::iterator slab_of(void* buffer) noexcept;
  void free(void* memory) noexcept;
  void free_slab(Slabs::iterator slab) noexcept;
  Result<void*> allocate(std::size_t capacity) noexcept;
  /// As many buffers as there are already, up to a slab. Gives one of them.
  Result<void*> carve(Spares<void*>& size, std::size_t capacity) noexcept;
  void run_deferred() noexcept override;

  Engine& engine_;
  port::Device& device_;
  std::array<Spares<void*>, 64> sizes_;  ///< By the logarithm of the capacity.
  Slabs slabs_;
  const std::size_t kept_bytes_max_;
  std::size_t kept_bytes_ = 0;
};

}  // namespace brant
