#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "base/object_pool.h"
#include "base/spares.h"
#include "brant/base/buffer.h"
#include "brant/base/result.h"
#include "core/engine.h"

namespace brant::lane {

class LandingPool;

/// Memory of the runtime that data lands in: lent, counted, and back in its pool when the last owner drops it.
struct LandingBlock {
  LandingPool* pool = nullptr;
  void* data = nullptr;
  std::size_t capacity = 0;
  MemoryKind kind = MemoryKind::host;
  std::uint32_t owners = 0;
  unsigned size_class = 0;

  [[nodiscard]] Buffer view(std::size_t bytes) const noexcept { return {data, bytes, kind}; }
};

/// Keeps blocks for reuse: allocating device memory for every message would cost more than the message, and stops the
/// device. Sizes in steps of an eighth of a power of two, so that little is wasted. One per process; the worker's
/// thread.
class LandingPool final : private DeferredWork {
 public:
  explicit LandingPool(Engine& engine) noexcept : engine_(engine), device_(engine.device()) {}
  LandingPool(const LandingPool&) = delete;
  LandingPool& operator=(const LandingPool&) = delete;
  ~LandingPool();

  /// Where data of a kind lands in this process: device data on its device, if it has one; other data in host memory.
  [[nodiscard]] MemoryKind landing_kind(MemoryKind source, bool host_only) const noexcept;
  /// With one owner. no_memory, limit_reached.
  Result<LandingBlock*> take(MemoryKind kind, std::size_t bytes) noexcept;
  static void drop(LandingBlock& block) noexcept {
    if (--block.owners == 0) block.pool->give_back(block);
  }
  /// Blocks lent now, and allocations made so far. For tests.
  [[nodiscard]] std::size_t lent() const noexcept { return lent_; }
  [[nodiscard]] std::size_t allocations() const noexcept { return allocations_; }

 private:
  static constexpr std::size_t kSmallest = 256;
  static constexpr std::size_t kKeptBytesMax = std::size_t{1} << 30;  ///< What is beyond it is freed, later.
  static constexpr unsigned kClasses = 64 * 8;

  Result<LandingBlock*> make(MemoryKind kind, std::size_t capacity, unsigned size_class) noexcept;
  void give_back(LandingBlock& block) noexcept;
  void free(LandingBlock& block) noexcept;
  void run_deferred() noexcept override;

  Engine& engine_;
  port::Device& device_;
  ObjectPool<LandingBlock> records_{std::size_t{1} << 20};
  std::array<std::array<Spares<LandingBlock*>, kClasses>, kMemoryKindCount> kept_;
  std::size_t kept_bytes_ = 0;
  std::size_t lent_ = 0;
  std::size_t allocations_ = 0;
};

}  // namespace brant::lane
