#include "models/halo/shaped.h"

#include <array>

namespace brant::halo {

ShapedExchange::ShapedExchange(Runtime& runtime, const HaloOptions& options)
    : Exchange(runtime, options), transfers_(runtime, layout_) {
  add(layout_.receives(), false);
  add(layout_.sends(), true);
}

void ShapedExchange::add(const std::vector<Link>& links, bool is_send) {
  for (const Link& link : links) {
    Part& part = parts_.emplace_back();
    part.transfer = &transfers_.add({&link, 1}, link.bytes, is_send);
    part.field = link.field;
    part.shape = shape_of(part, link, is_send);
  }
}

Shape ShapedExchange::shape_of(Part& part, const Link& link, bool is_send) const {
  const FieldStrides strides = layout_.strides_of(is_send ? link.message.from : link.message.to);
  const auto size = [](std::int64_t bytes) { return static_cast<std::size_t>(bytes); };
  const auto row_bytes = [&](const Box& box) { return size(box.high[0] - box.low[0]) * strides.cell; };
  std::vector<Box> boxes;
  for (const Region& region : link.message.regions) boxes.push_back(is_send ? region.from : region.to);
  const std::size_t variables = layout_.options().variables;
  if (boxes.size() == 1) {
    const Box& box = boxes[0];
    const std::array<ShapeDim, 3> dims = {{{size(box.high[1] - box.low[1]), strides.row},
                                           {size(box.high[2] - box.low[2]), strides.plane},
                                           {variables, strides.variable}}};
    return Shape::strided(size(strides.first_of(box)), row_bytes(box), dims).or_throw("halo: too large a box");
  }
  for (const Box& box : boxes) {
    for (std::int64_t v = 0; v < static_cast<std::int64_t>(variables); ++v) {
      for (std::int64_t z = 0; z < box.high[2] - box.low[2]; ++z) {
        for (std::int64_t y = 0; y < box.high[1] - box.low[1]; ++y) {
          const std::int64_t offset =
              strides.first_of(box) + v * strides.variable + z * strides.plane + y * strides.row;
          part.runs.push_back({size(offset), row_bytes(box)});
        }
      }
    }
  }
  return Shape::indexed(part.runs).or_throw("halo: too large a list of boxes");
}

std::size_t ShapedExchange::message_bytes() const noexcept {
  std::size_t sum = 0;
  for (const Link& link : layout_.sends()) sum += link.bytes;
  return sum;
}

Task<void> ShapedExchange::exchange(std::span<const Buffer> fields) {
  for (Part& part : parts_) transfers_.post(*part.transfer, fields[part.field], part.shape);
  co_await transfers_.ended();
}

}  // namespace brant::halo
