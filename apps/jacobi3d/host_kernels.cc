#include "host_kernels.h"

#include <algorithm>
#include <cmath>

namespace jacobi::host {
namespace {

void sweep_row(double* __restrict out, const double* __restrict in, std::int64_t row, std::int64_t plane,
               std::int64_t count) noexcept {
  for (std::int64_t x = 0; x < count; ++x) {
    out[x] = average(in[x], in[x - 1], in[x + 1], in[x - row], in[x + row], in[x - plane], in[x + plane]);
  }
}

/// Visits all elements of all faces: where they lie in the buffer, and where in the field.
template <typename Copy>
void for_each_packed(const PackedFaces& faces, Copy&& copy) {
  for (int index = 0; index < faces.count; ++index) {
    const PackedFace& face = faces.face[index];
    for (std::int64_t b = 0; b < face.count_b; ++b) {
      for (std::int64_t a = 0; a < face.count_a; ++a)
        copy(face.offset + b * face.count_a + a, face.first + b * face.step_b + a * face.step_a);
    }
  }
}

}  // namespace

void fill(double* field, Layout layout, Place place) noexcept {
  for (std::int64_t z = -1; z <= layout.cells.z; ++z) {
    for (std::int64_t y = -1; y <= layout.cells.y; ++y) {
      double* row = field + layout.at(0, y, z);
      for (std::int64_t x = -1; x <= layout.cells.x; ++x) row[x] = start_value(place, layout, x, y, z);
    }
  }
}

void sweep(double* next, const double* current, Layout layout, Box box) noexcept {
  for (std::int64_t z = box.low.z; z < box.high.z; ++z) {
    for (std::int64_t y = box.low.y; y < box.high.y; ++y) {
      const std::int64_t at = layout.at(box.low.x, y, z);
      sweep_row(next + at, current + at, layout.row, layout.plane, box.high.x - box.low.x);
    }
  }
}

void sweep_shell(double* next, const double* current, Layout layout, Shell shell) noexcept {
  for (int index = 0; index < shell.count; ++index) sweep(next, current, layout, shell.box[index]);
}

void largest_change(double* largest, const double* next, const double* current, Layout layout, Box box) noexcept {
  for (std::int64_t z = box.low.z; z < box.high.z; ++z) {
    for (std::int64_t y = box.low.y; y < box.high.y; ++y) {
      const std::int64_t at = layout.at(box.low.x, y, z);
      for (std::int64_t x = 0; x < box.high.x - box.low.x; ++x)
        *largest = std::max(*largest, std::abs(next[at + x] - current[at + x]));
    }
  }
}

void pack(double* buffer, const double* field, PackedFaces faces) noexcept {
  for_each_packed(faces, [&](std::int64_t packed, std::int64_t at) { buffer[packed] = field[at]; });
}

void unpack(double* field, const double* buffer, PackedFaces faces) noexcept {
  for_each_packed(faces, [&](std::int64_t packed, std::int64_t at) { field[at] = buffer[packed]; });
}

}  // namespace jacobi::host
