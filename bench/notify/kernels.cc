#include "bench/notify/kernels.h"

#include <cstddef>
#include <span>

#include "port/host_thread.h"

extern "C" const unsigned char notify_bench_kernels_fatbin[];
extern "C" const std::size_t notify_bench_kernels_fatbin_bytes;

namespace brant::bench {
namespace {

using notify::DeviceBell;
using notify::KernelControl;
using simt::Word;

void echo_on_host(const HostLaunch& launch) noexcept {
  simt::CpuThread machine = simt::thread_of(launch);
  notify_steps::echo(machine, launch.value<KernelControl>(0), launch.value<DeviceBell>(1), launch.value<DeviceBell>(2),
                     launch.value<Word>(3), launch.value<notify_steps::Witness>(4), launch.value<Word>(5));
}

void cost_on_host(const HostLaunch& launch) noexcept {
  simt::CpuThread machine = simt::thread_of(launch);
  notify_steps::cost(machine, launch.value<KernelControl>(0), launch.value<DeviceBell>(1), launch.value<DeviceBell>(2),
                     launch.value<Word>(3), launch.value<Word*>(4));
}

void play_on_host(const HostLaunch& launch) noexcept {
  simt::CpuThread machine = simt::thread_of(launch);
  notify_steps::play(machine, launch.value<KernelControl>(0), launch.value<DeviceBell>(1), launch.value<DeviceBell>(2),
                     launch.value<Word>(3), launch.value<Word>(4), launch.value<Word*>(5));
}

void play_put_on_host(const HostLaunch& launch) noexcept {
  simt::CpuThread machine = simt::thread_of(launch);
  notify_steps::play_put(machine, launch.value<KernelControl>(0), launch.value<DeviceBell>(1),
                         launch.value<DeviceBell>(2), launch.value<void*>(3), launch.value<const Word*>(4),
                         launch.value<notify_steps::Play>(5));
}

void play_lines_on_host(const HostLaunch& launch) noexcept {
  simt::CpuThread machine = simt::thread_of(launch);
  notify_steps::play_lines(machine, launch.value<KernelControl>(0), launch.value<notify::Line*>(1),
                           launch.value<const notify::Line*>(2), launch.value<notify_steps::Play>(3));
}

void nothing_on_host(const HostLaunch&) noexcept {}

std::span<const std::byte> image() noexcept {
  return std::as_bytes(std::span(notify_bench_kernels_fatbin, notify_bench_kernels_fatbin_bytes));
}

}  // namespace

NotifyKernels::NotifyKernels(Device device)
    : echo(device, image(), "brant_bench_notify_echo", &echo_on_host),
      cost(device, image(), "brant_bench_notify_cost", &cost_on_host),
      play(device, image(), "brant_bench_notify_play", &play_on_host),
      play_put(device, image(), "brant_bench_notify_play_put", &play_put_on_host),
      play_lines(device, image(), "brant_bench_notify_play_lines", &play_lines_on_host),
      nothing(device, image(), "brant_bench_notify_nothing", &nothing_on_host) {}

}  // namespace brant::bench
