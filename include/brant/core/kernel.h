#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>

#include "brant/base/api.h"
#include "brant/base/kernel_source.h"
#include "brant/base/status.h"
#include "brant/core/device.h"
#include "brant/core/stream.h"

namespace brant {

namespace port {
struct Kernel;
}

namespace detail {

BRANT_API port::Kernel* load_kernel(port::Device& device, const KernelSource& source);
BRANT_API Status launch_kernel(port::Device& device, port::Kernel* kernel, const LaunchShape& shape,
                               StreamHandle stream, void** arguments) noexcept;

}  // namespace detail

/// A kernel loaded on a device, launched with arguments of its own types: for programs that have their kernels as an
/// image (`nvcc -fatbin`) and run on machines with and without a GPU. CUDA code that is compiled into the program needs
/// no such thing: give it `Stream::native()`. Copied freely; valid while the Runtime of its device lives.
template <typename... Args>
class Kernel {
 public:
  static_assert((std::is_trivially_copyable_v<Args> && ...), "brant: a kernel's arguments are copied as bytes");

  /// Loads `symbol` (extern "C") of the image, at once: a load at the first launch would wait for kernels that run.
  /// `image` and `symbol` must outlive it. `on_host` is what an emulated device runs (`host_version<function>`). Throws
  /// not_supported (no image for this device, or it runs no kernels), not_found (no such symbol), device_failed. The
  /// driver may synchronise the device: load before the work begins.
  Kernel(Device device, std::span<const std::byte> image, const char* symbol, HostKernel on_host = nullptr)
      : device_(device), kernel_(detail::load_kernel(device.inner(), {image, symbol, on_host, kArgumentBytes})) {}

  /// Queues it on a stream of its device; the values are copied before this returns. Any thread. invalid_argument: a
  /// shape no GPU can launch; device_failed. Costs a launch of the driver, some microseconds; does not block.
  Status launch(const LaunchShape& shape, StreamHandle stream, Args... arguments) const noexcept {
    std::array<void*, sizeof...(Args)> addresses = {static_cast<void*>(&arguments)...};
    return detail::launch_kernel(device_.inner(), kernel_, shape, stream, addresses.data());
  }

  /// The inner side, for the layers above core.
  [[nodiscard]] port::Kernel* inner() const noexcept { return kernel_; }

 private:
  static constexpr std::array<std::size_t, sizeof...(Args)> kArgumentBytes = {sizeof(Args)...};

  Device device_;
  port::Kernel* kernel_;
};

}  // namespace brant
