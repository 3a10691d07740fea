#include "support/kernels/kernels.h"

#include <cstddef>
#include <span>

#include "port/host_thread.h"

extern "C" const unsigned char brant_test_kernels_fatbin[];
extern "C" const std::size_t brant_test_kernels_fatbin_bytes;

namespace brant::test {
namespace {

using notify::DeviceBell;
using notify::FanIn;
using notify::KernelControl;
using simt::Word;

void ring_on_host(const HostLaunch& launch) noexcept {
  simt::CpuThread machine = simt::thread_of(launch);
  steps::ring_once(machine, launch.value<DeviceBell>(0), launch.value<Word>(1));
}

void make_part_on_host(const HostLaunch& launch) noexcept {
  simt::CpuThread machine = simt::thread_of(launch);
  steps::make_part(machine, launch.value<DeviceBell>(0), launch.value<Word*>(1), launch.value<Word>(2),
                   launch.value<Word>(3));
}

void add_items_on_host(const HostLaunch& launch) noexcept {
  simt::CpuThread machine = simt::thread_of(launch);
  steps::add_items(machine, launch.value<KernelControl>(0), launch.value<Word*>(1));
}

void pass_on_on_host(const HostLaunch& launch) noexcept {
  simt::CpuThread machine = simt::thread_of(launch);
  steps::pass_on(machine, launch.value<KernelControl>(0), launch.value<DeviceBell>(1), launch.value<DeviceBell>(2),
                 launch.value<FanIn>(3));
}

void never_listen_on_host(const HostLaunch& launch) noexcept {
  simt::CpuThread machine = simt::thread_of(launch);
  steps::never_listen(machine, launch.value<KernelControl>(0), launch.value<Word*>(1));
}

std::span<const std::byte> image() noexcept {
  return std::as_bytes(std::span(brant_test_kernels_fatbin, brant_test_kernels_fatbin_bytes));
}

}  // namespace

RingKernel ring_kernel(Device device) { return {device, image(), "brant_test_ring", &ring_on_host}; }
MakePartKernel make_part_kernel(Device device) { return {device, image(), "brant_test_make_part", &make_part_on_host}; }
AddItemsKernel add_items_kernel(Device device) { return {device, image(), "brant_test_add_items", &add_items_on_host}; }
PassOnKernel pass_on_kernel(Device device) { return {device, image(), "brant_test_pass_on", &pass_on_on_host}; }
NeverListenKernel never_listen_kernel(Device device) {
  return {device, image(), "brant_test_never_listen", &never_listen_on_host};
}

}  // namespace brant::test
