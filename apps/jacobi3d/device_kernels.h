#pragma once

#include <array>
#include <cstddef>

#include "brant/base/status.h"
#include "grid.h"
#include "port/memory.h"

namespace jacobi {

/// A kernel loaded on a device, launched with arguments of its own types.
template <typename... Args>
class DeviceKernel {
 public:
  /// Throws brant::Error if the device cannot load it.
  DeviceKernel(brant::port::Kernels& kernels, const char* symbol, brant::port::HostKernel on_host);

  /// Queues the kernel on a stream. Throws brant::Error.
  void launch(const brant::port::LaunchShape& shape, brant::port::Stream* stream, Args... args) const;

 private:
  brant::port::Kernels& kernels_;
  const char* symbol_;
  brant::port::Kernel* kernel_;
};

/// All kernels of kernels.cu, loaded.
struct DeviceKernels {
  using Sweep = DeviceKernel<double*, const double*, Layout, Box, std::int64_t>;

  explicit DeviceKernels(brant::port::Kernels& kernels);

  Sweep sweep_pairs;
  Sweep sweep_plain;
  DeviceKernel<double*, const double*, Layout, Shell> sweep_shell;
  DeviceKernel<double*, const double*, PackedFaces> pack;
  DeviceKernel<double*, const double*, PackedFaces> unpack;
  DeviceKernel<double*, Layout, Place> fill;
  DeviceKernel<std::uint64_t*, const double*, const double*, Layout> difference;
};

template <typename... Args>
void DeviceKernel<Args...>::launch(const brant::port::LaunchShape& shape, brant::port::Stream* stream,
                                   Args... args) const {
  std::array<void*, sizeof...(Args)> addresses = {static_cast<void*>(&args)...};
  const brant::Status status = kernels_.launch(kernel_, shape, addresses.data(), stream);
  if (status != brant::Status::ok) {
    throw brant::Error(status, std::string("the kernel ") + symbol_ +
                                   " could not be launched: " + std::string(brant::status_text(status)));
  }
}

}  // namespace jacobi
