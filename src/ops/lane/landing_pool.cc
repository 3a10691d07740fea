#include "ops/lane/landing_pool.h"

#include <algorithm>
#include <bit>
#include <new>

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
  auto& kept = kept_[static_cast<std::size_t>(kind)][size.number];
  LandingBlock* block = nullptr;
  if (!kept.empty()) {
    block = kept.back();
    kept.pop_back();
    kept_bytes_ -= block->capacity;
  } else {
    block = records_.take();
    if (block == nullptr) return Status::limit_reached;
    const Result<void*> data = device_.allocate(kind, size.capacity);
    if (!data) {
      records_.give_back(block);
      return data.status();
    }
    *block = {this, *data, size.capacity, kind, 0, size.number};
    ++allocations_;
  }
  block->owners = 1;
  ++lent_;
  return block;
}

void LandingPool::give_back(LandingBlock& block) noexcept {
  --lent_;
  try {
    kept_[static_cast<std::size_t>(block.kind)][block.size_class].push_back(&block);
    kept_bytes_ += block.capacity;
  } catch (const std::bad_alloc&) {
    log::debug("no memory to keep a landing of {} bytes: the device frees it at the end", block.capacity);
  }
  if (kept_bytes_ > kKeptBytesMax) engine_.deferrals().defer(*this);
}

/// The largest first.
void LandingPool::run_deferred() noexcept {
  for (unsigned size = kClasses; size-- > 0;) {
    for (auto& of_kind : kept_) {
      std::vector<LandingBlock*>& blocks = of_kind[size];
      for (; kept_bytes_ > kKeptBytesMax && !blocks.empty(); blocks.pop_back()) {
        kept_bytes_ -= blocks.back()->capacity;
        free(*blocks.back());
      }
    }
  }
}

void LandingPool::free(LandingBlock& block) noexcept {
  static_cast<void>(device_.free(block.data));
  records_.give_back(&block);
}

}  // namespace brant::lane
