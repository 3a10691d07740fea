#include "block.h"

#include <algorithm>
#include <utility>

namespace jacobi {
namespace {

constexpr std::int64_t kFaceAlignment = 32;    // doubles: 256 bytes
constexpr std::size_t kMappableBytes = 16384;  // what other processes can map, of host memory

/// An x or y face at layer `layer` of its axis.
PackedFace face_at(const Layout& layout, int side, std::int64_t layer) noexcept {
  if (axis_of(side) == 0) return {layout.at(layer, 0, 0), layout.row, layout.plane, layout.cells.y, layout.cells.z, 0};
  return {layout.at(0, layer, 0), 1, layout.plane, layout.cells.x, layout.cells.z, 0};
}

std::size_t bytes_of(std::int64_t doubles) noexcept { return static_cast<std::size_t>(doubles) * sizeof(double); }

}  // namespace

Block::Block(brant::Runtime& runtime, const Decomposition& decomposition, int number, brant::MemoryKind kind,
             Faces faces)
    : runtime_(runtime), kind_(kind) {
  const Box box = decomposition.block(number);
  for (int side = 0; side < kSides; ++side) {
    has_neighbour_[static_cast<std::size_t>(side)] = decomposition.neighbour(number, side).has_value();
  }
  layout_ = make_layout(extent_of(box));
  place_ = {box.low, decomposition.global};
  split_ = split_block(layout_.cells, has_neighbour_);
  std::int64_t offset = 0;
  for (int side = 0; faces == Faces::gathered && side < z_low; ++side) {
    if (!has_neighbour(side)) continue;
    const std::int64_t last = axis_of(side) == 0 ? layout_.cells.x - 1 : layout_.cells.y - 1;
    PackedFace out = face_at(layout_, side, is_high(side) ? last : 0);
    PackedFace in = face_at(layout_, side, is_high(side) ? last + 1 : -1);
    out.offset = in.offset = offset;
    offset += (out.count_a * out.count_b + kFaceAlignment - 1) / kFaceAlignment * kFaceAlignment;
    face_index_[static_cast<std::size_t>(side)] = outgoing_.count;
    outgoing_.face[outgoing_.count++] = out;
    incoming_.face[incoming_.count++] = in;
  }
  for (brant::Memory& field : fields_) {
    field = runtime.allocate(kind, std::max(bytes_of(layout_.doubles), kMappableBytes));
  }
  if (offset > 0) {
    send_buffer_ = runtime.allocate(kind, bytes_of(offset));
    for (brant::Memory& buffer : receive_buffers_) buffer = runtime.allocate(kind, bytes_of(offset));
  }
}

brant::Buffer Block::piece(const brant::Memory& memory, std::int64_t first, std::int64_t doubles) const {
  return memory.part(bytes_of(first), bytes_of(doubles));
}

brant::ConstBuffer Block::message_out(int side) const {
  if (side >= z_low) {
    const std::int64_t z = is_high(side) ? layout_.cells.z - 1 : 0;
    return piece(fields_[0], layout_.at(0, 0, z), layout_.plane_span());
  }
  const PackedFace& packed = outgoing_.face[face_index_[static_cast<std::size_t>(side)]];
  return piece(send_buffer_, packed.offset, packed.count_a * packed.count_b);
}

brant::Buffer Block::landing(int side, std::size_t ahead) const {
  if (side >= z_low) {
    const std::int64_t z = is_high(side) ? layout_.cells.z : -1;
    return piece(fields_[ahead], layout_.at(0, 0, z), layout_.plane_span());
  }
  const PackedFace& packed = incoming_.face[face_index_[static_cast<std::size_t>(side)]];
  return piece(receive_buffers_[ahead], packed.offset, packed.count_a * packed.count_b);
}

std::size_t Block::message_bytes() const {
  std::size_t sum = 0;
  for (int side = 0; side < kSides; ++side) {
    if (has_neighbour(side)) sum += message_out(side).bytes;
  }
  return sum;
}

void Block::read_plane(std::int64_t z, std::span<double> plane) const {
  runtime_.copy(brant::Buffer(plane, brant::MemoryKind::host),
                piece(fields_[0], layout_.at(0, 0, z), layout_.plane_span()));
}

void Block::read(std::span<double> field) const {
  runtime_.copy(brant::Buffer(field, brant::MemoryKind::host), piece(fields_[0], 0, layout_.doubles));
}

}  // namespace jacobi
