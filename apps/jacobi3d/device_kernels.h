#pragma once

#include "brant/device.h"
#include "grid.h"

namespace jacobi {

/// All kernels of kernels.cu, loaded. Throws brant::Error if the device cannot load them.
struct DeviceKernels {
  using Sweep = brant::Kernel<double*, const double*, Layout, Box, std::int64_t>;

  explicit DeviceKernels(brant::Device device);

  Sweep sweep_pairs;
  Sweep sweep_plain;
  brant::Kernel<double*, const double*, Layout, Shell> sweep_shell;
  brant::Kernel<double*, const double*, PackedFaces> pack;
  brant::Kernel<double*, const double*, PackedFaces> unpack;
  brant::Kernel<double*, Layout, Place> fill;
  brant::Kernel<std::uint64_t*, const double*, const double*, Layout> difference;
};

}  // namespace jacobi
