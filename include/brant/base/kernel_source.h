#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace brant {

/// Whose work a busy device takes up first; work that runs is not interrupted.
enum class StreamPriority { normal, high };

/// How many copies of a kernel run: as in a launch of CUDA.
struct LaunchShape {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;

  [[nodiscard]] std::uint64_t blocks() const noexcept { return std::uint64_t{grid[0]} * grid[1] * grid[2]; }
};

/// How a kernel's host version sees its arguments on the emulated device.
struct HostLaunch {
  LaunchShape shape;
  void** arguments = nullptr;  ///< As in cuLaunchKernel: addresses of the argument values.
  void* (*engine_address)(void* device_pointer) noexcept =
      nullptr;  ///< Turns a device pointer into one the engine may dereference.
  /// The blocks that this call does: all of the grid, or one where every block has a call and a thread of its own, all
  /// of them at once (a cooperative launch).
  std::uint64_t first_block = 0;
  std::uint64_t blocks = 1;

  template <typename T>
  [[nodiscard]] T value(std::size_t index) const noexcept {
    return *static_cast<const T*>(arguments[index]);
  }
  /// The argument must be a device pointer (or null).
  template <typename T>
  [[nodiscard]] T* pointer(std::size_t index) const noexcept {
    void* raw = const_cast<void*>(static_cast<const void*>(*static_cast<T* const*>(arguments[index])));
    return raw == nullptr ? nullptr : static_cast<T*>(engine_address(raw));
  }
  /// Argument `index` as a host version takes it.
  template <typename T>
  [[nodiscard]] T argument(std::size_t index) const noexcept {
    if constexpr (std::is_pointer_v<T>) {
      return pointer<std::remove_pointer_t<T>>(index);
    } else {
      return value<T>(index);
    }
  }
};
using HostKernel = void (*)(const HostLaunch&) noexcept;

/// One kernel in all the forms it exists in: a symbol of a GPU image, and a host version for the emulated device.
struct KernelSource {
  std::span<const std::byte> image;  ///< fatbin or cubin; empty where nvcc was missing at build time.
  const char* symbol = nullptr;      ///< extern "C" name in the image.
  HostKernel on_host = nullptr;
  /// Size in bytes of each argument, so that an asynchronous engine can copy the values at launch.
  std::span<const std::size_t> argument_bytes;
};

namespace detail {

template <auto Function, typename... Args>
constexpr HostKernel called_by_device(void (*)(Args...) noexcept) noexcept {
  return [](const HostLaunch& launch) noexcept {
    [&]<std::size_t... Index>(std::index_sequence<Index...>) {
      Function(launch.argument<Args>(Index)...);
    }(std::index_sequence_for<Args...>{});
  };
}

}  // namespace detail

/// An ordinary function with the arguments of a kernel, in the form in which an emulated device calls it. One call does
/// the work of the whole grid, so it is none for cooperative launches; pointers come as pointers that the function may
/// dereference.
template <auto Function>
inline constexpr HostKernel host_version = detail::called_by_device<Function>(Function);

}  // namespace brant
