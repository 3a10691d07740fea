#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "brant/base/api.h"
#include "brant/base/result.h"

namespace brant {

/// Bytes that lie together, `offset` bytes behind the address that a shape is laid on.
struct ByteRun {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

/// One dimension of a strided shape. A stride may be negative or 0.
struct ShapeDim {
  std::size_t count = 1;
  std::ptrdiff_t stride = 0;  ///< In bytes, from one item of this dimension to the next.
};

/// How the bytes of one end of a transfer lie in memory, and their order: in one run, in runs of equal size at the
/// points of an n-dimensional grid, or in a list of runs. The two ends of a transfer may have different shapes of equal
/// size. A plain value of some 200 bytes; the runs of an indexed one stay the caller's.
///
///     // Column 3 of a matrix of 100 rows of 64 doubles:
///     const Shape column = *Shape::strided(3 * 8, 8, {{{.count = 100, .stride = 64 * 8}}});
class BRANT_API Shape {
 public:
  static constexpr unsigned kDimsMax = 8;
  enum class Form : std::uint8_t { contiguous, strided, indexed };

  /// No bytes.
  constexpr Shape() noexcept = default;
  static constexpr Shape contiguous(std::size_t bytes, std::size_t first = 0) noexcept {
    Shape shape;
    shape.first_ = first;
    shape.run_ = shape.bytes_ = shape.end_ = bytes;
    shape.lowest_ = first;
    shape.end_ += first;
    return shape;
  }
  /// Runs of `run` bytes. `first`: where the first one starts; `dims`: innermost first. Dimensions that continue one
  /// another are joined. invalid_argument: more than kDimsMax dimensions after that, bytes before offset 0, or sizes
  /// that 63 bits do not hold.
  static Result<Shape> strided(std::size_t first, std::size_t run, std::span<const ShapeDim> dims) noexcept;
  /// The runs in their order; they must stay valid while the shape is used. invalid_argument: sizes that 63 bits do not
  /// hold.
  static Result<Shape> indexed(std::span<const ByteRun> runs) noexcept;

  [[nodiscard]] constexpr Form form() const noexcept { return form_; }
  /// Of all runs together.
  [[nodiscard]] constexpr std::size_t bytes() const noexcept { return bytes_; }
  /// Memory in which all of them lie: from the lowest offset to the end of the last run.
  [[nodiscard]] constexpr std::size_t lowest() const noexcept { return lowest_; }
  [[nodiscard]] constexpr std::size_t end() const noexcept { return end_; }

  // Strided and contiguous.
  [[nodiscard]] constexpr std::size_t first() const noexcept { return first_; }
  [[nodiscard]] constexpr std::size_t run() const noexcept { return run_; }
  [[nodiscard]] constexpr std::span<const ShapeDim> dims() const noexcept { return {dims_.data(), dim_count_}; }
  // Indexed.
  [[nodiscard]] constexpr std::span<const ByteRun> runs() const noexcept { return runs_; }

 private:
  bool add(ShapeDim dim) noexcept;
  bool measure() noexcept;

  Form form_ = Form::contiguous;
  unsigned dim_count_ = 0;
  std::size_t bytes_ = 0;
  std::size_t first_ = 0;
  std::size_t lowest_ = 0;
  std::size_t end_ = 0;
  std::size_t run_ = 0;
  std::array<ShapeDim, kDimsMax> dims_{};
  std::span<const ByteRun> runs_;
};

/// How the bytes of a transfer lie at its two ends: as many at either, in the order of the shapes.
struct TransferShapes {
  Shape from;
  Shape to;
};

}  // namespace brant
