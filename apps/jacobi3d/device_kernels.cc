#include "device_kernels.h"

#include <bit>

#include "host_kernels.h"

// Made by brant_fatbin from kernels.cu.
extern "C" const unsigned char jacobi_kernels_fatbin[];
extern "C" const std::size_t jacobi_kernels_fatbin_bytes;

namespace jacobi {
namespace {

using brant::host_version;

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

std::span<const std::byte> image() noexcept {
  return std::as_bytes(std::span(jacobi_kernels_fatbin, jacobi_kernels_fatbin_bytes));
}

}  // namespace

DeviceKernels::DeviceKernels(brant::Device device)
    : sweep_pairs(device, image(), "jacobi_sweep", host_version<sweep_on_host>),
      sweep_plain(device, image(), "jacobi_sweep_plain", host_version<sweep_on_host>),
      sweep_shell(device, image(), "jacobi_sweep_shell", host_version<shell_on_host>),
      pack(device, image(), "jacobi_pack", host_version<pack_on_host>),
      unpack(device, image(), "jacobi_unpack", host_version<unpack_on_host>),
      fill(device, image(), "jacobi_fill", host_version<fill_on_host>),
      difference(device, image(), "jacobi_difference", host_version<difference_on_host>) {}

}  // namespace jacobi
