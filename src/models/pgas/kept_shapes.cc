#include "models/pgas/kept_shapes.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace brant {
namespace {

/// What comes before the dimensions or the runs of a shape.
struct ShapeHead {
  std::uint32_t form = 0;
  std::uint32_t count = 0;  ///< Of dimensions, or of runs.
  std::uint64_t first = 0;
  std::uint64_t run = 0;
};
static_assert(std::is_trivially_copyable_v<ShapeHead> && std::is_trivially_copyable_v<ShapeDim> &&
              std::is_trivially_copyable_v<ByteRun>);

std::span<const std::byte> items_of(const Shape& shape) noexcept {
  return shape.form() == Shape::Form::indexed ? std::as_bytes(shape.runs()) : std::as_bytes(shape.dims());
}

void pack_one(const Shape& shape, std::vector<std::byte>& to) {
  const bool is_list = shape.form() == Shape::Form::indexed;
  ShapeHead head;
  head.form = static_cast<std::uint32_t>(shape.form());
  head.count = static_cast<std::uint32_t>(is_list ? shape.runs().size() : shape.dims().size());
  head.first = shape.first();
  head.run = shape.run();
  const auto bytes = std::as_bytes(std::span(&head, 1)), items = items_of(shape);
  to.insert(to.end(), bytes.begin(), bytes.end());
  to.insert(to.end(), items.begin(), items.end());
}

/// False: there are not so many bytes.
bool take(std::span<const std::byte>& packed, void* to, std::size_t bytes) noexcept {
  if (packed.size() < bytes) return false;
  if (bytes != 0) std::memcpy(to, packed.data(), bytes);
  packed = packed.subspan(bytes);
  return true;
}

}  // namespace

std::size_t KeptShapes::packed_bytes(const TransferShapes& shapes) noexcept {
  return 2 * sizeof(ShapeHead) + items_of(shapes.from).size() + items_of(shapes.to).size();
}

void KeptShapes::pack(const TransferShapes& shapes, std::vector<std::byte>& to) {
  to.reserve(to.size() + packed_bytes(shapes));
  pack_one(shapes.from, to);
  pack_one(shapes.to, to);
}

Status KeptShapes::unpack(std::span<const std::byte> packed) {
  Status status = unpack_one(packed, shapes_.from, from_runs_);
  if (status == Status::ok) status = unpack_one(packed, shapes_.to, to_runs_);
  return status == Status::ok && !packed.empty() ? Status::invalid_argument : status;
}

Status KeptShapes::unpack_one(std::span<const std::byte>& packed, Shape& shape, std::vector<ByteRun>& runs) {
  ShapeHead head;
  if (!take(packed, &head, sizeof(head))) return Status::invalid_argument;
  Result<Shape> made = Status::invalid_argument;
  switch (static_cast<Shape::Form>(head.form)) {
    case Shape::Form::contiguous: made = Shape::contiguous(head.run, head.first); break;
    case Shape::Form::strided: {
      std::array<ShapeDim, Shape::kDimsMax> dims;
      if (head.count > dims.size() || !take(packed, dims.data(), head.count * sizeof(ShapeDim))) break;
      made = Shape::strided(head.first, head.run, std::span(dims).first(head.count));
      break;
    }
    case Shape::Form::indexed:
      if (head.count > packed.size() / sizeof(ByteRun)) break;
      runs.resize(head.count);
      if (take(packed, runs.data(), head.count * sizeof(ByteRun))) made = Shape::indexed(runs);
      break;
  }
  if (made) shape = *made;
  return made.status();
}

}  // namespace brant
