#include "models/halo/kernels.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "port/memory.h"

// Made by brant_fatbin from kernels.cu.
extern "C" const unsigned char halo_kernels_fatbin[];
extern "C" const std::size_t halo_kernels_fatbin_bytes;

namespace brant::halo {
namespace {

constexpr unsigned kFanInMax = 65535;

std::span<const std::byte> image() noexcept {
  return std::as_bytes(std::span(halo_kernels_fatbin, halo_kernels_fatbin_bytes));
}

void copy_on_host(const HostLaunch& launch) noexcept {
  simt::CpuThread machine(launch.engine_address);
  copy_chunks(machine, launch.value<CopyTable>(0), launch.value<Word>(1), launch.value<Word>(2), {});
}

/// One block after another, as long as each does its exchange: `exchange(machine, control, plan)`.
template <typename Exchange>
void each_block(const HostLaunch& launch, Exchange&& exchange) noexcept {
  const auto control = launch.value<notify::KernelControl>(0);
  const auto plan = launch.value<DirectPlan>(1);
  const auto blocks = static_cast<unsigned>(launch.blocks);
  for (unsigned block = 0; block < blocks; ++block) {
    simt::CpuThread machine(launch.engine_address, block, blocks);
    if (!exchange(machine, control, plan)) return;
  }
}

void exchange_on_host(const HostLaunch& launch) noexcept {
  each_block(launch, [&](auto& machine, const auto& control, const auto& plan) {
    return exchange_directly(machine, control, plan, launch.value<Word>(2));
  });
}

void exchange_counted_on_host(const HostLaunch& launch) noexcept {
  each_block(launch, [&](auto& machine, const auto& control, const auto& plan) {
    return exchange_counted(machine, control, plan, launch.value<DirectCount>(2));
  });
}

/// Of a cooperative launch: a call and a thread for each block.
void stay_on_host(const HostLaunch& launch) noexcept {
  simt::CpuThread machine(launch.engine_address, static_cast<unsigned>(launch.first_block), launch.shape.grid[0]);
  exchange_as_told(machine, launch.value<notify::KernelControl>(0), launch.value<DirectPlan>(1),
                   launch.value<notify::DeviceBell>(2));
}

void pack_on_host(const HostLaunch& launch) noexcept {
  simt::CpuThread machine(launch.engine_address, static_cast<unsigned>(launch.first_block), launch.shape.grid[0]);
  pack_as_told(machine, launch.value<notify::KernelControl>(0), launch.value<TriggeredPlan>(1));
}

}  // namespace

LaunchShape shape_of(Word blocks, unsigned threads) noexcept {
  LaunchShape shape;
  shape.grid[0] = static_cast<unsigned>(std::min<Word>(blocks, kFanInMax));
  shape.block[0] = threads;
  return shape;
}

unsigned blocks_at_once(Device device, port::Kernel* kernel, unsigned threads) {
  port::Kernels& kernels = *device.inner().kernels();
  const unsigned blocks =
      kernels.blocks_at_once(kernel, shape_of(1, threads)).or_throw("halo: a kernel of the exchange");
  return std::max(blocks, 1u);
}

unsigned staying_share(unsigned at_once) noexcept {
  constexpr unsigned kShare = 8;
  return std::max(at_once / kShare, 1u);
}

unsigned staying_blocks(Word chunks, unsigned at_once) noexcept {
  constexpr Word kWarps = kStayThreads / kWarpThreads;
  constexpr Word kSquads = kStayThreads / kChunkThreads;
  if (chunks <= 2 * kWarps) return 1;
  return static_cast<unsigned>(std::min<Word>((chunks + kSquads - 1) / kSquads, staying_share(at_once)));
}

void require_blocks(unsigned blocks) {
  if (blocks != 0 && blocks <= kFanInMax) return;
  throw Error(Status::invalid_argument,
              fmt::format("halo: a kernel of {} blocks cannot exchange: give it 1 to {}", blocks, kFanInMax));
}

CopyKernel load_copy_kernel(Device device) { return {device, image(), "brant_halo_copy", &copy_on_host}; }
DirectKernel load_direct_kernel(Device device) { return {device, image(), "brant_halo_exchange", &exchange_on_host}; }

CountedKernel load_counted_kernel(Device device) {
  return {device, image(), "brant_halo_exchange_counted", &exchange_counted_on_host};
}

ResidentExchange load_resident_kernel(Device device) { return {device, image(), "brant_halo_resident", &stay_on_host}; }

TriggeredKernel load_triggered_kernel(Device device) { return {device, image(), "brant_halo_pack", &pack_on_host}; }

}  // namespace brant::halo
