#include "ops/mover/stage_pool.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <new>
#include <utility>

#include "base/log.h"

namespace brant {

StagePool::~StagePool() {
  engine_.deferrals().take_back(*this);
  for (std::size_t power = kSlabPower; power < sizes_.size(); ++power) {
    for (void* buffer : sizes_[power]) free(buffer);
  }
  for (const auto& [base, slab] : slabs_) free(base);
}

Spares<void*>& StagePool::spares_of(std::size_t capacity) noexcept {
  return sizes_[static_cast<std::size_t>(std::countr_zero(capacity))];
}

StagePool::Slabs::iterator StagePool::slab_of(void* buffer) noexcept {
  return std::prev(slabs_.upper_bound(static_cast<std::byte*>(buffer)));
}

Result<StagePool::Lease> StagePool::take(std::size_t bytes) noexcept {
  const std::size_t capacity = std::bit_ceil(std::max(bytes, kSmallest));
  Spares<void*>& size = spares_of(capacity);
  if (!size.empty()) {
    void* const buffer = size.take();
    kept_bytes_ -= capacity;
    if (capacity < kSlabBytes) ++slab_of(buffer)->second.lent;
    return Lease{buffer, capacity};
  }
  const Result<void*> data =
      capacity < kSlabBytes ? carve(size, capacity) : size.make([&] { return allocate(capacity); });
  if (!data) {
    log::error(
        "no pinned host buffer of {} bytes for the staged path: {}. Use fewer or smaller messages, or another path",
        capacity, status_text(data.status()));
    return data.status();
  }
  return Lease{*data, capacity};
}

Result<void*> StagePool::allocate(std::size_t capacity) noexcept {
  return device_.allocate(MemoryKind::pinned, capacity);
}

Result<void*> StagePool::carve(Spares<void*>& size, std::size_t capacity) noexcept {
  Slab slab{.part = capacity, .parts = std::clamp<std::size_t>(size.made(), 1, kSlabBytes / capacity), .lent = 1};
  Slabs::node_type record;
  try {
    Slabs made;
    made.emplace(nullptr, slab);
    record = made.extract(made.begin());
  } catch (const std::bad_alloc&) {
    return Status::no_memory;  // before there is memory of the device, which could not be freed within progress
  }
  const Result<void*> first = size.make([&] {
    Result<void*> memory = allocate(slab.parts * capacity);
    if (!memory && slab.parts > 1) memory = allocate((slab.parts = 1) * capacity);
    return memory;
  });
  if (!first) return first;
  auto* const base = static_cast<std::byte*>(*first);
  record.key() = base;
  record.mapped() = slab;
  slabs_.insert(std::move(record));
  for (std::size_t i = 1; i < slab.parts; ++i) {
    const Result<void*> further = size.make([&]() -> Result<void*> { return base + i * capacity; });
    if (!further) break;
    size.give_back(*further);
    kept_bytes_ += capacity;
  }
  return first;
}

void StagePool::give_back(Lease lease) noexcept {
  if (lease.data == nullptr) return;
  spares_of(lease.bytes).give_back(lease.data);
  if (lease.bytes < kSlabBytes) --slab_of(lease.data)->second.lent;
  kept_bytes_ += lease.bytes;
  if (kept_bytes_ > kept_bytes_max_) engine_.deferrals().defer(*this);
}

/// The largest first, and the slabs of which nothing is lent.
void StagePool::run_deferred() noexcept {
  for (std::size_t power = sizes_.size(); power-- > kSlabPower;) {
    Spares<void*>& size = sizes_[power];
    while (kept_bytes_ > kept_bytes_max_ && !size.empty()) {
      kept_bytes_ -= std::size_t{1} << power;
      free(size.drop());
    }
  }
  for (auto slab = slabs_.begin(); slab != slabs_.end() && kept_bytes_ > kept_bytes_max_;) {
    const auto next = std::next(slab);
    if (slab->second.lent == 0) free_slab(slab);
    slab = next;
  }
}

void StagePool::free_slab(Slabs::iterator slab) noexcept {
  const auto& [base, parts] = *slab;
  Spares<void*>& size = spares_of(parts.part);
  const std::size_t before = size.made();
  const std::byte* const end = base + parts.parts * parts.part;
  size.drop_if([&](const void* buffer) { return buffer >= base && buffer < end; });
  kept_bytes_ -= (before - size.made()) * parts.part;
  free(base);
  slabs_.erase(slab);
}

void StagePool::free(void* memory) noexcept {
  if (device_.free(memory) != Status::ok) log::warn("a stage buffer at {} could not be freed", memory);
}

}  // namespace brant
