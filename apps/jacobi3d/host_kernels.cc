#include "host_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace jacobi::host {
namespace {

void sweep_row(double* __restrict out, const double* __restrict in, std::int64_t row, std::int64_t plane,
               std::int64_t count) noexcept {
  for (std::int64_t x = 0; x < count; ++x) {
    out[x] = average(in[x], in[x - 1], in[x + 1], in[x - row], in[x + row], in[x - plane], in[x + plane]);
  }
}

template <typename Row>
void for_each_row(const Layout& layout, const Box& box, Row&& visit) {
  const std::int64_t count = box.high.x - box.low.x;
  for (std::int64_t z = box.low.z; z < box.high.z; ++z) {
    for (std::int64_t y = box.low.y; y < box.high.y; ++y) visit(layout.at(box.low.x, y, z), count);
  }
}

template <typename Copy>
void for_each_face_row(const PackedFaces& faces, Copy&& copy) {
  for (int index = 0; index < faces.count; ++index) {
    const PackedFace& face = faces.face[index];
    for (std::int64_t b = 0; b < face.count_b; ++b)
      copy(face, face.offset + b * face.count_a, face.first + b * face.step_b);
  }
}

}  // namespace

void fill(double* field, const Layout& layout, const Place& place) noexcept {
  for (std::int64_t z = -1; z <= layout.cells.z; ++z) {
    for (std::int64_t y = -1; y <= layout.cells.y; ++y) {
      double* row = field + layout.at(0, y, z);
      for (std::int64_t x = -1; x <= layout.cells.x; ++x) row[x] = start_value(place, layout, x, y, z);
    }
  }
}

void sweep(double* next, const double* current, const Layout& layout, const Box& box) noexcept {
  for_each_row(layout, box, [&](std::int64_t at, std::int64_t count) {
    sweep_row(next + at, current + at, layout.row, layout.plane, count);
  });
}

void pack(double* buffer, const double* field, const PackedFaces& faces) noexcept {
  for_each_face_row(faces, [&](const PackedFace& face, std::int64_t in_buffer, std::int64_t in_field) {
    for (std::int64_t a = 0; a < face.count_a; ++a) buffer[in_buffer + a] = field[in_field + a * face.step_a];
  });
}

void unpack(double* field, const double* buffer, const PackedFaces& faces) noexcept {
  for_each_face_row(faces, [&](const PackedFace& face, std::int64_t in_buffer, std::int64_t in_field) {
    for (std::int64_t a = 0; a < face.count_a; ++a) field[in_field + a * face.step_a] = buffer[in_buffer + a];
  });
}

/// As bits, non-negative doubles order like integers and a NaN is larger than all: the maximum keeps NaN.
double largest_difference(const double* a, const double* b, const Layout& layout) noexcept {
  std::uint64_t largest = 0;
  const Box whole{{0, 0, 0}, {layout.cells.x, layout.cells.y, layout.cells.z}};
  for_each_row(layout, whole, [&](std::int64_t at, std::int64_t count) {
    for (std::int64_t x = at; x < at + count; ++x) {
      largest = std::max(largest, std::bit_cast<std::uint64_t>(std::fabs(a[x] - b[x])));
    }
  });
  return std::bit_cast<double>(largest);
}

}  // namespace jacobi::host
