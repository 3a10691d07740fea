#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "base/spares.h"
#include "brant/base/result.h"
#include "core/engine.h"

namespace brant {

/// Pinned host buffers for the staged path, kept for reuse: page-locking costs far more than any copy. Those below
/// kSlabBytes are parts of slabs, which stay: each allocation is a file that other processes can map, and a process has
/// few of those.
class StagePool final : private DeferredWork {
 public:
  struct Lease {
    void* data = nullptr;
    std::size_t bytes = 0;  ///< Capacity: a power of two.
  };

  explicit StagePool(Engine& engine) noexcept : engine_(engine), device_(engine.device()) {}
  StagePool(const StagePool&) = delete;
  StagePool& operator=(const StagePool&) = delete;
  ~StagePool();

  Result<Lease> take(std::size_t bytes) noexcept;
  void give_back(Lease lease) noexcept;

 private:
  static constexpr std::size_t kSmallest = 4096;
  static constexpr std::size_t kSlabPower = 22;
  static constexpr std::size_t kSlabBytes = std::size_t{1} << kSlabPower;
  /// Of buffers that are no parts of slabs: what is beyond it is freed, later. Slabs are freed with the pool.
  static constexpr std::size_t kKeptBytesMax = std::size_t{2} << 30;

  Result<void*> allocate(std::size_t capacity) noexcept;
  /// As many buffers as there are already, up to a slab. Gives one of them.
  Result<void*> carve(Spares<void*>& size, std::size_t capacity) noexcept;
  void run_deferred() noexcept override;

  Engine& engine_;
  port::Device& device_;
  std::array<Spares<void*>, 64> sizes_;  ///< By the logarithm of the capacity.
  std::vector<void*> slabs_;
  std::size_t kept_bytes_ = 0;  ///< Of those that are no parts of slabs.
};

}  // namespace brant
