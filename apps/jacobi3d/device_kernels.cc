#include "device_kernels.h"

#include <bit>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "host_kernels.h"

// Made by brant_fatbin from kernels.cu.
extern "C" const unsigned char jacobi_kernels_fatbin[];
extern "C" const std::size_t jacobi_kernels_fatbin_bytes;

namespace jacobi {
namespace {

using brant::port::HostLaunch;

// The host versions, with the arguments of the kernels. A kernel's grid is a matter of speed: here one call does all of
// it.

void sweep_on_host(double* next, const double* current, Layout layout, Box box, std::int64_t) noexcept {
  host::sweep(next, current, layout, box);
}

void shell_on_host(double* next, const double* current, Layout layout, Shell shell) noexcept {
  for (int index = 0; index < shell.count; ++index) host::sweep(next, current, layout, shell.box[index]);
}

void pack_on_host(double* buffer, const double* field, PackedFaces faces) noexcept { host::pack(buffer, field, faces); }

void unpack_on_host(double* field, const double* buffer, PackedFaces faces) noexcept {
  host::unpack(field, buffer, faces);
}

void fill_on_host(double* field, Layout layout, Place place) noexcept {
  host::fill(field, layout, place, -1, layout.cells.z + 1);
}

void difference_on_host(std::uint64_t* largest, const double* a, const double* b, Layout layout) noexcept {
  const Box whole{{0, 0, 0}, {layout.cells.x, layout.cells.y, layout.cells.z}};
  *largest = std::bit_cast<std::uint64_t>(host::largest_difference(a, b, layout, whole));
}

/// Argument `index` of a launch as the host version takes it: device pointers become pointers of the emulated device's
/// engine.
template <typename T>
T argument(const HostLaunch& launch, std::size_t index) noexcept {
  if constexpr (std::is_pointer_v<T>) {
    return launch.pointer<std::remove_pointer_t<T>>(index);
  } else {
    return launch.value<T>(index);
  }
}

/// The form in which a device calls a host version.
template <auto Function, typename... Args>
constexpr brant::port::HostKernel called_by_device(void (*)(Args...) noexcept) noexcept {
  return [](const HostLaunch& launch) noexcept {
    [&]<std::size_t... Index>(std::index_sequence<Index...>) {
      Function(argument<Args>(launch, Index)...);
    }(std::index_sequence_for<Args...>{});
  };
}

template <auto Function>
constexpr auto host_version = called_by_device<Function>(Function);

}  // namespace

template <typename... Args>
DeviceKernel<Args...>::DeviceKernel(brant::port::Kernels& kernels, const char* symbol, brant::port::HostKernel on_host)
    : kernels_(kernels), symbol_(symbol) {
  static constexpr std::array<std::size_t, sizeof...(Args)> kBytes = {sizeof(Args)...};
  const auto image = std::as_bytes(std::span(jacobi_kernels_fatbin, jacobi_kernels_fatbin_bytes));
  const brant::Result<brant::port::Kernel*> loaded = kernels.load({image, symbol, on_host, kBytes});
  if (!loaded) {
    throw brant::Error(
        loaded.status(),
        fmt::format("the kernel {} could not be loaded ({}){}", symbol, brant::status_text(loaded.status()),
                    image.empty() ? ": this jacobi3d was built without nvcc. Run 'make setup' and build again, or use "
                                    "--memory host"
                                  : ""));
  }
  kernel_ = *loaded;
}

DeviceKernels::DeviceKernels(brant::port::Kernels& kernels)
    : sweep_pairs(kernels, "jacobi_sweep", host_version<sweep_on_host>),
      sweep_plain(kernels, "jacobi_sweep_plain", host_version<sweep_on_host>),
      sweep_shell(kernels, "jacobi_sweep_shell", host_version<shell_on_host>),
      pack(kernels, "jacobi_pack", host_version<pack_on_host>),
      unpack(kernels, "jacobi_unpack", host_version<unpack_on_host>),
      fill(kernels, "jacobi_fill", host_version<fill_on_host>),
      difference(kernels, "jacobi_difference", host_version<difference_on_host>) {}

}  // namespace jacobi
