#include "bench/interference/kernels.h"

#include <cstddef>
#include <span>

extern "C" const unsigned char interference_bench_kernels_fatbin[];
extern "C" const std::size_t interference_bench_kernels_fatbin_bytes;

namespace brant::bench {
namespace {

using interference_steps::Player;
using interference_steps::Scene;
using simt::Word;

/// Of an ordinary launch: one call for all blocks.
void write_on_host(const HostLaunch& launch) noexcept {
  const auto blocks = static_cast<unsigned>(launch.shape.blocks());
  for (unsigned block = 0; block < blocks; ++block) {
    simt::CpuThread machine(launch.engine_address, block, blocks);
    interference_steps::write(machine, launch.value<Word*>(0), launch.value<Word>(1), launch.value<Word>(2), 0);
  }
}

/// Of a cooperative launch: a call and a thread for each block.
void play_on_host(const HostLaunch& launch) noexcept {
  simt::CpuThread machine(launch.engine_address, static_cast<unsigned>(launch.first_block),
                          static_cast<unsigned>(launch.shape.blocks()));
  Player player(machine, launch.value<notify::KernelControl>(0), launch.value<Scene>(1),
                launch.value<notify::FanIn>(2));
  player.play();
}

std::span<const std::byte> image() noexcept {
  return std::as_bytes(std::span(interference_bench_kernels_fatbin, interference_bench_kernels_fatbin_bytes));
}

}  // namespace

InterferenceKernels::InterferenceKernels(Device device)
    : write(device, image(), "brant_bench_interference_write", &write_on_host),
      play(device, image(), "brant_bench_interference_play", &play_on_host) {}

}  // namespace brant::bench
