#pragma once

#include <array>
#include <span>

#include "brant/brant.h"
#include "decomposition.h"
#include "grid.h"

namespace jacobi {

/// How the faces of a block leave it.
enum class Faces {
  gathered,  ///< x and y faces packed in buffers of the block.
  in_place,  ///< As they lie in the field: whoever sends them packs them.
};

/// A piece of the grid: its two fields in memory of one kind, the buffers its x and y faces are gathered
/// in, and the shape of it all. A z face is one contiguous piece of a field: it is sent from where it is, and lands
/// where it belongs.
///
/// Needs a runtime that outlives it. Thread rule: the worker's thread.
class Block {
 public:
  /// Allocates. Throws no_memory, not_supported, naming what was needed.
  Block(brant::Runtime& runtime, const Decomposition& decomposition, int number, brant::MemoryKind kind,
        Faces faces = Faces::gathered);

  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] const Place& place() const noexcept { return place_; }
  [[nodiscard]] const Split& split() const noexcept { return split_; }
  [[nodiscard]] Box whole() const noexcept { return {{0, 0, 0}, layout_.cells}; }
  [[nodiscard]] brant::MemoryKind kind() const noexcept { return kind_; }
  [[nodiscard]] bool has_neighbour(int side) const noexcept { return has_neighbour_[static_cast<std::size_t>(side)]; }

  [[nodiscard]] double* current() const noexcept { return fields_[0].as<double>(); }
  [[nodiscard]] double* next() const noexcept { return fields_[1].as<double>(); }
  void swap() noexcept {
    std::swap(fields_[0], fields_[1]);
    std::swap(receive_buffers_[0], receive_buffers_[1]);
  }

  /// The memory of both, for whoever exchanges ghosts in it: others can map it.
  [[nodiscard]] brant::Buffer current_field() const { return fields_[0]; }
  [[nodiscard]] brant::Buffer next_field() const { return fields_[1]; }

  /// What packing gathers from the field, and where unpacking puts what arrived. Empty without x and y neighbours.
  [[nodiscard]] const PackedFaces& outgoing() const noexcept { return outgoing_; }
  [[nodiscard]] const PackedFaces& incoming() const noexcept { return incoming_; }
  [[nodiscard]] double* send_buffer() const noexcept { return send_buffer_.as<double>(); }
  [[nodiscard]] double* receive_buffer() const noexcept { return receive_buffers_[0].as<double>(); }

  /// The bytes that go to the neighbour of a side once packed, and the place for those that come. Views of the current
  /// field or of the buffers; valid until the next swap.
  [[nodiscard]] brant::ConstBuffer message_out(int side) const;
  [[nodiscard]] brant::Buffer message_in(int side) const { return landing(side, 0); }
  /// What `message_in` will be after the next swap: for faces of a neighbour that is ahead.
  [[nodiscard]] brant::Buffer next_message_in(int side) const { return landing(side, 1); }

  /// Of all of them.
  [[nodiscard]] std::size_t message_bytes() const;

  /// Copies plane z of the current field (layout().plane_span() doubles, rows `layout().row` apart) to host memory.
  /// Waits.
  void read_plane(std::int64_t z, std::span<double> plane) const;
  /// Copies all of the current field, `layout().doubles`. Waits.
  void read(std::span<double> field) const;
  /// Copies the current field over the next one, by the best copy there is. Waits.
  void copy_over_next() { runtime_.copy(fields_[1], fields_[0]); }

 private:
  [[nodiscard]] brant::Buffer piece(const brant::Memory& memory, std::int64_t first, std::int64_t doubles) const;
  [[nodiscard]] brant::Buffer landing(int side, std::size_t ahead) const;

  brant::Runtime& runtime_;
  brant::MemoryKind kind_;
  std::array<bool, kSides> has_neighbour_{};
  Layout layout_;
  Place place_;
  Split split_;
  PackedFaces outgoing_;
  PackedFaces incoming_;
  std::array<int, kSides> face_index_{};  ///< Which packed face belongs to a side.
  std::array<brant::Memory, 2> fields_;
  brant::Memory send_buffer_;
  std::array<brant::Memory, 2> receive_buffers_;  ///< Of this iteration, and of the next.
};

}  // namespace jacobi
