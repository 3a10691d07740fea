#include "serial.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

namespace jacobi {
namespace {

constexpr double kCellsMax = 128e6;   // 2 GB on rank 0
constexpr double kUpdatesMax = 10e9;  // about a minute

}  // namespace

void SerialRun::require_feasible(const Extent& global, std::int64_t iterations) {
  const double cells = static_cast<double>(global.x) * static_cast<double>(global.y) * static_cast<double>(global.z);
  if (cells <= kCellsMax && cells * static_cast<double>(iterations) <= kUpdatesMax) return;
  throw brant::Error(
      brant::Status::limit_reached,
      fmt::format(
          "--check solves the problem on rank 0 alone too, and {} cells for {} iterations (warm-up included) are too "
          "many for that: at most {:.0f} million cells and {:.0f} billion updates. Use a smaller --size or fewer "
          "--iterations to check, then measure without --check",
          to_text(global), iterations, kCellsMax / 1e6, kUpdatesMax / 1e9));
}

SerialRun::SerialRun(const Extent& global, std::int64_t iterations, const NpyReader* input)
    : global_(global), field_(static_cast<std::size_t>(volume(global))), next_(field_.size()) {
  for (std::int64_t z = 0; z < global.z; ++z) {
    for (std::int64_t y = 0; y < global.y; ++y) {
      if (input != nullptr) {
        input->read_row(0, y, z, std::span(field_).subspan(at(0, y, z), static_cast<std::size_t>(global.x)));
        continue;
      }
      for (std::int64_t x = 0; x < global.x; ++x) field_[at(x, y, z)] = initial_value(x, y, z);
    }
  }
  for (std::int64_t iteration = 0; iteration < iterations; ++iteration) iterate();
  for (std::size_t index = 0; index < field_.size(); ++index) {
    const double change = std::fabs(field_[index] - next_[index]);
    if (!(change <= residual_)) residual_ = change;  // keeps NaN
  }
}

double SerialRun::cell(const std::vector<double>& field, std::int64_t x, std::int64_t y,
                       std::int64_t z) const noexcept {
  const bool outside = x < 0 || y < 0 || z < 0 || x >= global_.x || y >= global_.y || z >= global_.z;
  return outside ? boundary_value(z) : field[at(x, y, z)];
}

void SerialRun::iterate() noexcept {
  for (std::int64_t z = 0; z < global_.z; ++z) {
    for (std::int64_t y = 0; y < global_.y; ++y) {
      for (std::int64_t x = 0; x < global_.x; ++x) {
        next_[at(x, y, z)] = average(field_[at(x, y, z)], cell(field_, x - 1, y, z), cell(field_, x + 1, y, z),
                                     cell(field_, x, y - 1, z), cell(field_, x, y + 1, z), cell(field_, x, y, z - 1),
                                     cell(field_, x, y, z + 1));
      }
    }
  }
  field_.swap(next_);
}

void SerialRun::compare(const PlaneView& plane) noexcept {
  for (std::int64_t y = 0; y < plane.count_y; ++y) {
    const std::span<const double> line = plane.line(y);
    for (std::int64_t x = 0; x < plane.count_x; ++x) {
      const double theirs = line[static_cast<std::size_t>(x)];
      const double ours = field_[at(plane.first.x + x, plane.first.y + y, plane.first.z)];
      const bool both_nan =
          std::isnan(theirs) && std::isnan(ours);  // a file may hold NaN; which one comes out is the processor's choice
      if (both_nan || std::bit_cast<std::uint64_t>(theirs) == std::bit_cast<std::uint64_t>(ours)) continue;
      if (differences_++ == 0) {
        first_difference_ = fmt::format("cell ({}, {}, {}) is {:.17g}, serially {:.17g}", plane.first.x + x,
                                        plane.first.y + y, plane.first.z, theirs, ours);
      }
    }
  }
}

}  // namespace jacobi
