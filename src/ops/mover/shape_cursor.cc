#include "ops/mover/shape_cursor.h"

#include <limits>

namespace brant {

ShapeCursor::ShapeCursor(const Shape* shape, std::size_t position, RunMark* mark) noexcept : shape_(shape) {
  if (shape == nullptr) {
    run_ = std::numeric_limits<std::size_t>::max();
    within_ = position;
    return;
  }
  shape->form() == Shape::Form::indexed ? seek_indexed(position, mark) : seek_point(position);
}

void ShapeCursor::seek_point(std::size_t position) noexcept {
  run_ = shape_->run();
  start_ = static_cast<std::ptrdiff_t>(shape_->first());
  if (run_ == 0) return;
  within_ = position % run_;
  std::size_t point = position / run_;
  for (std::size_t i = 0; i < shape_->dims().size(); ++i) {
    const ShapeDim& dim = shape_->dims()[i];
    point_[i] = point % dim.count;
    point /= dim.count;
    start_ += static_cast<std::ptrdiff_t>(point_[i]) * dim.stride;
  }
}

void ShapeCursor::next() noexcept {
  within_ = 0;
  if (shape_ == nullptr) return;
  shape_->form() == Shape::Form::indexed ? next_indexed() : next_point();
}

void ShapeCursor::next_point() noexcept {
  for (std::size_t i = 0; i < shape_->dims().size(); ++i) {
    const ShapeDim& dim = shape_->dims()[i];
    start_ += dim.stride;
    if (++point_[i] < dim.count) return;
    start_ -= static_cast<std::ptrdiff_t>(dim.count) * dim.stride;
    point_[i] = 0;
  }
}

void ShapeCursor::next_indexed() noexcept {
  const auto runs = shape_->runs();
  for (++index_; index_ < runs.size() && runs[index_].bytes == 0;) ++index_;
  run_ = index_ < runs.size() ? runs[index_].bytes : 0;
  start_ = index_ < runs.size() ? static_cast<std::ptrdiff_t>(runs[index_].offset) : 0;
}

void ShapeCursor::seek_indexed(std::size_t position, RunMark* mark) noexcept {
  const auto runs = shape_->runs();
  std::size_t before = 0;
  if (mark != nullptr && mark->before <= position) {
    index_ = mark->run;
    before = mark->before;
  }
  while (index_ < runs.size() && position - before >= runs[index_].bytes) before += runs[index_++].bytes;
  if (mark != nullptr) *mark = {index_, before};
  if (index_ == runs.size()) return;
  run_ = runs[index_].bytes;
  start_ = static_cast<std::ptrdiff_t>(runs[index_].offset);
  within_ = position - before;
}

}  // namespace brant
