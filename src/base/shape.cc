#include "brant/base/shape.h"

#include <algorithm>
#include <limits>

namespace brant {
namespace {

constexpr std::size_t kMost = std::numeric_limits<std::ptrdiff_t>::max();

}  // namespace

/// False: it does not fit.
bool Shape::add(ShapeDim dim) noexcept {
  if (dim.count == 1) return true;
  // It goes on where the runs so far end: they are one larger run, or one dimension.
  if (dim_count_ == 0 && dim.stride >= 0 && static_cast<std::size_t>(dim.stride) == run_) {
    return !__builtin_mul_overflow(run_, dim.count, &run_);
  }
  if (dim_count_ != 0) {
    ShapeDim& last = dims_[dim_count_ - 1];
    std::ptrdiff_t length = 0;
    if (__builtin_mul_overflow(last.stride, last.count, &length)) return false;
    if (length == dim.stride) return !__builtin_mul_overflow(last.count, dim.count, &last.count);
  }
  if (dim_count_ == kDimsMax) return false;
  dims_[dim_count_++] = dim;
  return true;
}

/// False: beyond what can be addressed.
bool Shape::measure() noexcept {
  bytes_ = run_;
  std::ptrdiff_t lowest = static_cast<std::ptrdiff_t>(first_);
  std::ptrdiff_t highest = lowest;
  for (const ShapeDim& dim : dims()) {
    if (__builtin_mul_overflow(bytes_, dim.count, &bytes_)) return false;
    std::ptrdiff_t reach = 0;
    if (__builtin_mul_overflow(dim.stride, dim.count - 1, &reach)) return false;
    std::ptrdiff_t& bound = dim.stride < 0 ? lowest : highest;
    if (__builtin_add_overflow(bound, reach, &bound)) return false;
  }
  std::ptrdiff_t end = 0;
  if (lowest < 0 || bytes_ > kMost || __builtin_add_overflow(highest, run_, &end)) return false;
  lowest_ = static_cast<std::size_t>(lowest);
  end_ = static_cast<std::size_t>(end);
  return true;
}

Result<Shape> Shape::strided(std::size_t first, std::size_t run, std::span<const ShapeDim> dims) noexcept {
  const bool empty =
      run == 0 || std::any_of(dims.begin(), dims.end(), [](const ShapeDim& dim) { return dim.count == 0; });
  if (first > kMost || run > kMost) return Status::invalid_argument;
  if (empty) return contiguous(0, first);
  Shape shape;
  shape.first_ = first;
  shape.run_ = run;
  for (const ShapeDim& dim : dims) {
    if (dim.count > kMost || !shape.add(dim)) return Status::invalid_argument;
  }
  if (!shape.measure()) return Status::invalid_argument;
  shape.form_ = shape.dim_count_ == 0 ? Form::contiguous : Form::strided;
  return shape;
}

Result<Shape> Shape::indexed(std::span<const ByteRun> runs) noexcept {
  Shape shape;
  shape.form_ = Form::indexed;
  shape.runs_ = runs;
  shape.lowest_ = runs.empty() ? 0 : kMost;
  for (const ByteRun& run : runs) {
    std::size_t end = 0;
    if (__builtin_add_overflow(run.offset, run.bytes, &end) || end > kMost) return Status::invalid_argument;
    if (__builtin_add_overflow(shape.bytes_, run.bytes, &shape.bytes_) || shape.bytes_ > kMost)
      return Status::invalid_argument;
    if (run.bytes == 0) continue;
    shape.lowest_ = std::min(shape.lowest_, run.offset);
    shape.end_ = std::max(shape.end_, end);
  }
  shape.lowest_ = std::min(shape.lowest_, shape.end_);
  return shape;
}

}  // namespace brant
