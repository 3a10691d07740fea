#include "bench/kernel_puts/kernels.h"

#include <cstddef>
#include <span>

#include "port/host_thread.h"

extern "C" const unsigned char putting_kernels_fatbin[];
extern "C" const std::size_t putting_kernels_fatbin_bytes;

namespace brant::bench {
namespace {

using kernel_steps::Play;
using notify::KernelControl;

using Step = void (*)(simt::CpuThread&, const KernelControl&, const Play&);
template <Step step>
void on_host(const HostLaunch& launch) noexcept {
  simt::CpuThread machine = simt::thread_of(launch);
  step(machine, launch.value<KernelControl>(0), launch.value<Play>(1));
}
using ChosenStep = void (*)(simt::CpuThread&, const KernelControl&, const Play&, simt::Word);
template <ChosenStep step>
void chosen_on_host(const HostLaunch& launch) noexcept {
  simt::CpuThread machine = simt::thread_of(launch);
  step(machine, launch.value<KernelControl>(0), launch.value<Play>(1), launch.value<simt::Word>(2));
}

std::span<const std::byte> image() noexcept {
  return std::as_bytes(std::span(putting_kernels_fatbin, putting_kernels_fatbin_bytes));
}

}  // namespace

PuttingKernels::PuttingKernels(Device device)
    : put_notify(device, image(), "brant_bench_kernel_put_notify", &on_host<&kernel_steps::put_notify>),
      put_lines(device, image(), "brant_bench_kernel_put_lines", &on_host<&kernel_steps::put_lines>),
      stream_puts(device, image(), "brant_bench_kernel_stream_puts", &chosen_on_host<&kernel_steps::stream_puts>),
      get(device, image(), "brant_bench_kernel_get", &on_host<&kernel_steps::get>),
      fetch_add(device, image(), "brant_bench_kernel_fetch_add", &chosen_on_host<&kernel_steps::fetch_add>),
      barrier(device, image(), "brant_bench_kernel_barrier", &on_host<&kernel_steps::barrier>) {}

}  // namespace brant::bench
