#pragma once

#include <array>
#include <cstddef>

#include "base/spares.h"
#include "brant/base/result.h"
#include "core/engine.h"

namespace brant {

/// Pinned host buffers for the staged path, kept for reuse: page-locking costs far more than any copy.
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
  static constexpr std::size_t kKeptBytesMax = std::size_t{2} << 30;  ///< What is beyond it is freed, later.

  void run_deferred() noexcept override;

  Engine& engine_;
  port::Device& device_;
  std::array<Spares<void*>, 64> sizes_;  ///< By the logarithm of the capacity.
  std::size_t kept_bytes_ = 0;
};

}  // namespace brant
