#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "field_file.h"
#include "npy.h"

namespace jacobi {

/// The same problem, solved by one process in the most obvious way and sharing nothing with the program but the
/// formula. What a parallel run is checked against.
class SerialRun {
 public:
  /// Throws limit_reached, with the cure, if the problem is too large to be solved serially in reasonable time and
  /// memory.
  static void require_feasible(const Extent& global, std::int64_t iterations);

  /// Solves. `input` may be null: then the initial field is that of `initial_value`.
  SerialRun(const Extent& global, std::int64_t iterations, const NpyReader* input);

  /// Largest change of a cell in the last iteration.
  [[nodiscard]] double residual() const noexcept { return residual_; }

  /// Counts cells that differ in any bit from this run's.
  void compare(const PlaneView& plane) noexcept;
  [[nodiscard]] std::int64_t differences() const noexcept { return differences_; }
  /// Where the first difference is, and what the two values are. Empty if there is none.
  [[nodiscard]] const std::string& first_difference() const noexcept { return first_difference_; }

 private:
  [[nodiscard]] std::size_t at(std::int64_t x, std::int64_t y, std::int64_t z) const noexcept {
    return static_cast<std::size_t>(x + global_.x * (y + global_.y * z));
  }
  /// The value of a cell of the field, or the boundary's outside.
  [[nodiscard]] double cell(const std::vector<double>& field, std::int64_t x, std::int64_t y,
                            std::int64_t z) const noexcept;
  void iterate() noexcept;

  Extent global_;
  std::vector<double> field_;
  std::vector<double> next_;
  double residual_ = 0.0;
  std::int64_t differences_ = 0;
  std::string first_difference_;
};

}  // namespace jacobi
