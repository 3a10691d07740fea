#include "ops/mover/copy_kernels.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "base/log.h"

// Made by brant_fatbin from copy_kernels.cu.
extern "C" const unsigned char mover_kernels_fatbin[];
extern "C" const std::size_t mover_kernels_fatbin_bytes;

namespace brant {
namespace {

constexpr unsigned kThreads = 512;
constexpr std::size_t kBytesPerBlock = kThreads * 16 * 4;
constexpr unsigned kBlocksMax = 16;  // of one order: with many orders the device is full anyway
constexpr unsigned kUnitsPerThread = 4;
constexpr unsigned kShapedBlocksMax = 1024;

constexpr std::array<std::size_t, 1> kOrdersBytes{sizeof(CopyOrders)};
constexpr std::array<std::size_t, 1> kShapedBytes{sizeof(ShapedOrder)};

// What the kernels do, for devices without a GPU. Memory that is null was freed by a program that gave up; a GPU would
// have waited with that.

void copy_orders_on_host(const port::HostLaunch& launch) noexcept {
  const auto orders = launch.value<CopyOrders>(0);
  for (unsigned i = 0; i < launch.shape.grid[1]; ++i) {
    const CopyOrders::Order& order = orders.orders[i];
    void* const to = launch.engine_address(order.to);
    const void* const from = launch.engine_address(const_cast<std::byte*>(order.from));
    if (to != nullptr && from != nullptr) std::memcpy(to, from, static_cast<std::size_t>(order.bytes));
  }
}

template <typename Index>
void copy_shaped(const port::HostLaunch& launch, const ShapedOrder& order) noexcept {
  auto* const to = static_cast<std::byte*>(launch.engine_address(order.to.first));
  const auto* const from = static_cast<const std::byte*>(launch.engine_address(order.from.first));
  if (to == nullptr || from == nullptr) return;
  for (std::uint64_t i = 0; i < order.units; ++i) {
    std::memcpy(to + unit_offset<Index>(order.to, i, order.unit), from + unit_offset<Index>(order.from, i, order.unit),
                order.unit);
  }
}

void copy_shaped_on_host(const port::HostLaunch& launch) noexcept {
  const auto order = launch.value<ShapedOrder>(0);
  order.narrow ? copy_shaped<std::uint32_t>(launch, order) : copy_shaped<std::uint64_t>(launch, order);
}

unsigned blocks(std::uint64_t work, std::uint64_t per_block, unsigned most) noexcept {
  return static_cast<unsigned>(std::clamp<std::uint64_t>((work + per_block - 1) / per_block, 1, most));
}

}  // namespace

void CopyKernels::open() noexcept {
  if (opened_) return;
  opened_ = true;
  port::Kernels* kernels = device_.kernels();
  if (kernels == nullptr) return;
  const auto image = std::as_bytes(std::span(mover_kernels_fatbin, mover_kernels_fatbin_bytes));
  const Result<port::Kernel*> orders = kernels->load({image, "brant_copy_orders", &copy_orders_on_host, kOrdersBytes});
  const Result<port::Kernel*> shaped = kernels->load({image, "brant_copy_shaped", &copy_shaped_on_host, kShapedBytes});
  if (!orders || !shaped) {
    const Status why = orders ? shaped.status() : orders.status();
    return log::info("no kernels for copies ({}): they go one by one", status_text(why));
  }
  orders_ = *orders;
  shaped_ = *shaped;
}

Status CopyKernels::launch(CopyOrders& orders, unsigned count, std::size_t largest, port::Stream* stream) noexcept {
  port::LaunchShape shape;
  shape.grid[0] = blocks(largest, kBytesPerBlock, kBlocksMax);
  shape.grid[1] = count;
  shape.block[0] = kThreads;
  void* arguments[] = {&orders};
  return device_.kernels()->launch(orders_, shape, arguments, stream);
}

Status CopyKernels::launch(ShapedOrder& order, port::Stream* stream) noexcept {
  port::LaunchShape shape;
  shape.grid[0] = blocks(order.units, kThreads * kUnitsPerThread, kShapedBlocksMax);
  shape.block[0] = kThreads;
  void* arguments[] = {&order};
  return device_.kernels()->launch(shaped_, shape, arguments, stream);
}

}  // namespace brant
