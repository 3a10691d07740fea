#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "brant/base/shape.h"

/// Shapes of equal size, for tests that move bytes from any of them into any other.
namespace brant::test {

/// Where each byte of a shape lies, in their order: what a Shape says, in the plainest words.
inline std::vector<std::size_t> offsets_of(const Shape& shape) {
  std::vector<std::size_t> offsets;
  if (shape.form() == Shape::Form::indexed) {
    for (const ByteRun& run : shape.runs()) {
      for (std::size_t byte = 0; byte < run.bytes; ++byte) offsets.push_back(run.offset + byte);
    }
    return offsets;
  }
  std::vector<std::ptrdiff_t> starts = {static_cast<std::ptrdiff_t>(shape.first())};
  for (const ShapeDim& dim : shape.dims()) {
    const std::vector<std::ptrdiff_t> inner = starts;
    for (std::size_t i = 1; i < dim.count; ++i) {
      for (const std::ptrdiff_t start : inner) starts.push_back(start + static_cast<std::ptrdiff_t>(i) * dim.stride);
    }
  }
  for (const std::ptrdiff_t start : starts) {
    for (std::size_t byte = 0; byte < shape.run(); ++byte) offsets.push_back(static_cast<std::size_t>(start) + byte);
  }
  return offsets;
}

/// Each of `scale` x kUnit bytes, within `room(scale)` bytes.
class ShapeZoo {
 public:
  static constexpr std::size_t kUnit = 3360;
  static constexpr std::size_t room(std::size_t scale) { return 5 * scale * kUnit; }

  struct Named {
    std::string name;
    Shape shape;
  };

  explicit ShapeZoo(std::size_t scale) {
    const std::size_t bytes = scale * kUnit;
    const auto strided = [](std::size_t first, std::size_t run, std::vector<ShapeDim> dims) {
      return *Shape::strided(first, run, dims);
    };
    shapes_.push_back({"run", Shape::contiguous(bytes, 5)});
    shapes_.push_back({"column", strided(3, 8, {{bytes / 8, 24}})});
    shapes_.push_back({"aligned", strided(64, 48, {{7, 64}, {bytes / 336, 512}})});
    shapes_.push_back({"block", strided(2, 40, {{7, 64}, {4, 600}, {bytes / 1120, 4000}})});
    shapes_.push_back({"backwards", strided(3 * bytes, 4, {{bytes / 4, -12}})});
    std::mt19937 random(7);
    for (std::size_t left = bytes, at = 0; left != 0;) {
      const std::size_t run = std::min<std::size_t>(left, random() % 50);
      runs_.push_back({at, run});
      at += run + random() % 9;
      left -= run;
    }
    std::shuffle(runs_.begin(), runs_.end(), random);
    shapes_.push_back({"list", *Shape::indexed(runs_)});
  }
  ShapeZoo(const ShapeZoo&) = delete;
  ShapeZoo& operator=(const ShapeZoo&) = delete;

  [[nodiscard]] const std::vector<Named>& shapes() const { return shapes_; }

 private:
  std::vector<ByteRun> runs_;
  std::vector<Named> shapes_;
};

/// What memory that held `before` holds when the bytes of `source` have come, from one shape into the other.
inline std::vector<std::byte> moved(std::vector<std::byte> before, std::size_t at, const std::vector<std::byte>& source,
                                    std::size_t from_at, const TransferShapes& shapes) {
  const std::vector<std::size_t> from = offsets_of(shapes.from), to = offsets_of(shapes.to);
  for (std::size_t i = 0; i < to.size(); ++i) before[at + to[i]] = source[from_at + from[i]];
  return before;
}

}  // namespace brant::test
