#include "port/memory/emulated/emulated_kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "base/log.h"
#include "port/memory/grid_limits.h"
#include "port/memory/late_load.h"

namespace brant::port::memory {
namespace {

constexpr std::size_t kArgumentAlignmentMax = 16;
constexpr unsigned kSharedBytesMax = 227 * 1024;

std::size_t aligned(std::size_t offset, std::size_t bytes) noexcept {
  const std::size_t step = std::min(std::bit_ceil(bytes), kArgumentAlignmentMax);
  return (offset + step - 1) / step * step;
}

bool launchable(const LaunchShape& shape) noexcept {
  const auto& [gx, gy, gz] = shape.grid;
  const auto& [bx, by, bz] = shape.block;
  const bool none_zero = gx > 0 && gy > 0 && gz > 0 && bx > 0 && by > 0 && bz > 0;
  const bool grid_fits = gx <= 0x7fffffffu && gy <= 65535u && gz <= 65535u;
  const bool block_fits =
      bx <= kBlockThreadsMax && by <= kBlockThreadsMax && bz <= 64u && std::uint64_t{bx} * by * bz <= kBlockThreadsMax;
  return none_zero && grid_fits && block_fits && shape.shared_bytes <= kSharedBytesMax;
}

}  // namespace

Result<Kernel*> EmulatedKernels::load(const KernelSource& source) noexcept {
  const char* name = source.symbol == nullptr ? "(no name)" : source.symbol;
  if (source.on_host == nullptr) {
    log::error("kernel {} has no host version: the emulated device cannot run it", name);
    return Status::not_supported;
  }
  if (source.argument_bytes.size() > kKernelArgumentsMax) return Status::invalid_argument;
  std::size_t total = 0;
  for (const std::size_t bytes : source.argument_bytes) {
    if (bytes == 0 || bytes > kKernelArgumentBytesMax) return Status::invalid_argument;
    total = aligned(total, bytes) + bytes;
  }
  if (total > kKernelArgumentBytesMax) return Status::invalid_argument;
  try {
    auto kernel = std::make_unique<Loaded>();
    kernel->function = source.on_host;
    kernel->argument_bytes.assign(source.argument_bytes.begin(), source.argument_bytes.end());
    const std::lock_guard lock(mutex_);
    for (const auto& known : loaded_) {
      if (known->function == kernel->function && known->argument_bytes == kernel->argument_bytes) {
        return reinterpret_cast<Kernel*>(known.get());
      }
    }
    warn_of_late_load(staying_, source.symbol);
    loaded_.push_back(std::move(kernel));
    return reinterpret_cast<Kernel*>(loaded_.back().get());
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

Status EmulatedKernels::launch(Kernel* kernel, const LaunchShape& shape, void** arguments, Stream* stream) noexcept {
  return queue(kernel, shape, arguments, stream, false);
}

Result<unsigned> EmulatedKernels::blocks_at_once(Kernel* kernel, const LaunchShape& shape) noexcept {
  LaunchShape one = shape;
  one.grid[0] = one.grid[1] = one.grid[2] = 1;
  if (kernel == nullptr || !launchable(one)) return Status::invalid_argument;
  return blocks_at_once_;
}

Status EmulatedKernels::launch_cooperative(Kernel* kernel, const LaunchShape& shape, void** arguments,
                                           Stream* stream) noexcept {
  if (launchable(shape) && shape.blocks() > blocks_at_once_) return refuse_grid(shape, blocks_at_once_);
  return queue(kernel, shape, arguments, stream, true);
}

Status EmulatedKernels::queue(Kernel* kernel, const LaunchShape& shape, void** arguments, Stream* stream,
                              bool cooperative) noexcept {
  if (kernel == nullptr || stream == nullptr || !launchable(shape)) return Status::invalid_argument;
  const Loaded& loaded = *reinterpret_cast<const Loaded*>(kernel);
  if (arguments == nullptr && !loaded.argument_bytes.empty()) return Status::invalid_argument;
  try {
    KernelWork work{.kernel = loaded.function, .shape = shape, .cooperative = cooperative, .values = {}, .offsets = {}};
    for (std::size_t i = 0; i < loaded.argument_bytes.size(); ++i) {
      if (arguments[i] == nullptr) return Status::invalid_argument;
      const std::size_t bytes = loaded.argument_bytes[i];
      const std::size_t offset = aligned(work.values.size(), bytes);
      work.values.resize(offset + bytes);
      work.offsets.push_back(offset);
      std::memcpy(work.values.data() + offset, arguments[i], bytes);
    }
    return streams_.launch(std::move(work), stream);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

}  // namespace brant::port::memory
