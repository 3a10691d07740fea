#include "models/mpi/types/pack.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/copy_small.h"
#include "models/mpi/types/walk.h"

namespace brant::mpi {
namespace {

std::byte* memory_at(std::int64_t address) noexcept {
  return std::bit_cast<std::byte*>(static_cast<std::uintptr_t>(address));
}

/// Between runs in memory and bytes that lie together, which it goes along. `kPacks`: from the runs.
template <bool kPacks>
class RunCopier {
 public:
  explicit RunCopier(std::byte* together) noexcept : together_(together) {}

  void run(std::int64_t at, std::uint64_t bytes, std::uint16_t /*basic*/) noexcept {
    kPacks ? copy_small(together_, memory_at(at), bytes) : copy_small(memory_at(at), together_, bytes);
    together_ += bytes;
  }

  void loop(std::int64_t at, const Layout& run, std::uint64_t count, std::int64_t stride) noexcept {
    const auto at_stride = [&](std::uint64_t i) { return at + static_cast<std::int64_t>(i) * stride; };
    copy_runs(run.bytes, count, at_stride, stride >= kFar || stride <= -kFar);
  }

  void runs(std::int64_t base, const Layout& list, std::size_t first, std::size_t last) noexcept {
    const Layout::Run* entries = list.runs.data() + first;
    if (list.equal_run != 0) {
      return copy_runs(list.equal_run, last - first, [&](std::uint64_t i) { return base + entries[i].offset; }, false);
    }
    std::uint64_t start = first == 0 ? 0 : entries[-1].end;
    for (std::size_t i = 0; i < last - first; ++i) {
      run(base + entries[i].offset, entries[i].end - start, 0);
      start = entries[i].end;
    }
  }

 private:
  /// Where runs are `kFar` bytes apart and more, so many are asked for before they are copied: memory takes longer than
  /// the processor looks ahead.
  static constexpr std::uint64_t kAhead = 32;
  static constexpr std::int64_t kFar = 128;

  /// So many runs of equal size. The usual ones are moves of registers.
  template <typename Place>
  void copy_runs(std::uint64_t bytes, std::uint64_t count, Place place, bool far) noexcept {
    switch (bytes) {
      case 1: return copy_equal<1>(count, place, far);
      case 2: return copy_equal<2>(count, place, far);
      case 4: return copy_equal<4>(count, place, far);
      case 8: return copy_equal<8>(count, place, far);
      case 12: return copy_equal<12>(count, place, far);
      case 16: return copy_equal<16>(count, place, far);
      case 24: return copy_equal<24>(count, place, far);
      case 32: return copy_equal<32>(count, place, far);
      case 64: return copy_equal<64>(count, place, far);
      default:
        for (std::uint64_t i = 0; i < count; ++i) run(place(i), bytes, 0);
    }
  }

  template <std::size_t kBytes, typename Place>
  void copy_equal(std::uint64_t count, Place place, bool far) noexcept {
    std::byte* together = together_;
    const auto copy = [&](std::uint64_t i) {
      std::byte* memory = memory_at(place(i));
      kPacks ? std::memcpy(together, memory, kBytes) : std::memcpy(memory, together, kBytes);
      together += kBytes;
    };
    std::uint64_t i = 0;
    for (; far && i + kAhead + 8 <= count; i += 8) {
      for (std::uint64_t k = 0; k < 8; ++k) __builtin_prefetch(memory_at(place(i + kAhead + k)), kPacks ? 0 : 1);
      for (std::uint64_t k = 0; k < 8; ++k) copy(i + k);
    }
    for (; i + 8 <= count; i += 8) {
      for (std::uint64_t k = 0; k < 8; ++k) copy(i + k);
    }
    for (; i < count; ++i) copy(i);
    together_ = together;
  }

  std::byte* together_;
};

template <bool kPacks>
void copy(std::byte* together, std::size_t bytes, const void* user, Count count, const Datatype& type,
          Count position) noexcept {
  const Placed& placed = type.layout();
  const Count all = type.bytes_of(count);
  if (placed.empty() || position < 0 || position >= all) return;
  const auto begin = static_cast<std::uint64_t>(position);
  const std::uint64_t end = begin + std::min<std::uint64_t>(bytes, static_cast<std::uint64_t>(all) - begin);
  const auto base = static_cast<std::int64_t>(std::bit_cast<std::uintptr_t>(user)) + placed.offset;
  RunCopier<kPacks> copier(together);
  if (type.contiguous()) {
    copier.run(base + position, end - begin, 0);
  } else {
    walk_loop(*placed.layout, base, type.extent(), begin, end, copier);
  }
}

}  // namespace

void pack(const void* user, Count count, const Datatype& type, Count position, std::span<std::byte> to) noexcept {
  copy<true>(to.data(), to.size(), user, count, type, position);
}

void unpack(std::span<const std::byte> from, Count position, void* user, Count count, const Datatype& type) noexcept {
  // Unpacking only reads what lies together.
  copy<false>(const_cast<std::byte*>(from.data()), from.size(), user, count, type, position);
}

}  // namespace brant::mpi
