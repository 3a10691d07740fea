#include "ops/lane/landing_pool.h"

#include <algorithm>
#include <bit>

#include "base/log.h"
#include "brant/ops/lane/data.h"

namespace brant::lane {
namespace {

struct SizeClass {
  unsigned number;
  std::size_t capacity;
};

/// The next eighth of a power of two that is not below `bytes`.
SizeClass class_of(std::size_t bytes) noexcept {
  const auto log = static_cast<unsigned>(std::bit_width(bytes) - 1);
  const std::size_t step = (std::size_t{1} << log) / 8;
  const std::size_t steps = (bytes + step - 1) / step;  // 8 to 16
  return {log * 8 + static_cast<unsigned>(steps - 8), steps * step};
}

}  // namespace

void drop_landing(LandingBlock* block) noexcept { LandingPool::drop(*block); }

LandingPool::~LandingPool() {
  engine_.deferrals().take_back(*this);
  for (auto& of_kind : kept_) {
    for (auto& blocks : of_kind) {
      for (LandingBlock* block : blocks) free(*block);
    }
  }
  if (lent_ != 0) log::debug("{} landings were still owned when the runtime went", lent_);
}

MemoryKind LandingPool::landing_kind(MemoryKind source, bool host_only) const noexcept {
  const port::DeviceCapabilities& device = device_.capabilities();
  const bool from_device = source == MemoryKind::cuda || source == MemoryKind::emulated;
  if (from_device && !host_only) {
    if (device.offers(MemoryKind::cuda)) return MemoryKind::cuda;
    if (device.offers(MemoryKind::emulated)) return MemoryKind::emulated;
  }
  return MemoryKind::host;
}

Result<LandingBlock*> LandingPool::take(MemoryKind kind, std::size_t bytes) noexcept {
  const SizeClass size = class_of(std::max(bytes, kSmallest));
  Spares<LandingBlock*>& kept = kept_[static_cast<std::size_t>(kind)][size.number];
  LandingBlock* block = nullptr;
  if (!kept.empty()) {
    block = kept.take();
    kept_bytes_ -= block->capacity;
  } else {
    const Result<LandingBlock*> made = kept.make([&] { return make(kind, size.capacity, size.number); });
    if (!made) return made.status();
    block = *made;
  }
  block->owners = 1;
  ++lent_;
  return block;
}

Result<LandingBlock*> LandingPool::make(MemoryKind kind, std::size_t capacity, unsigned size_class) noexcept {
  LandingBlock* const block = records_.take();
  if (block == nullptr) return records_.refusal();
  const Result<void*> data = device_.allocate(kind, capacity);
  if (!data) {
    records_.give_back(block);
    return data.status();
  }
  *block = {this, *data, capacity, kind, 0, size_class};
  ++allocations_;
  return block;
}

void LandingPool::give_back(LandingBlock& block) noexcept {
  --lent_;
  kept_[static_cast<std::size_t>(block.kind)][block.size_class].give_back(&block);
  kept_bytes_ += block.capacity;
  if (kept_bytes_ > kKeptBytesMax) engine_.deferrals().defer(*this);
}

/// The largest first.
void LandingPool::run_deferred() noexcept {
  for (unsigned size = kClasses; size-- > 0;) {
    for (auto& of_kind : kept_) {
      Spares<LandingBlock*>& blocks = of_kind[size];
      while (kept_bytes_ > kKeptBytesMax && !blocks.empty()) {
        LandingBlock& block = *blocks.drop();
        kept_bytes_ -= block.capacity;
        free(block);
      }
    }
  }
}

void LandingPool::free(LandingBlock& block) noexcept {
  static_cast<void>(device_.free(block.data));
  records_.give_back(&block);
}

}  // namespace brant::lane
