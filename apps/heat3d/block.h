#pragma once

#include <array>
#include <optional>
#include <vector>

#include "body.h"
#include "brant/brant.h"
#include "brant/coll/team.h"
#include "brant/pgas.h"
#include "decomposition.h"

namespace heat {

/// Everything of a step comes twice, for even steps and odd ones.
inline constexpr std::size_t kParities = 2;
constexpr std::size_t parity_of(std::int64_t step) noexcept { return static_cast<std::size_t>(step % 2); }

/// What others need to know of a block. Travels as bytes.
struct Places {
  std::array<brant::GlobalPtr<double>, kParities> field;
  std::array<brant::GlobalPtr<double>, kParities> ghosts;
  brant::GlobalPtr<std::uint64_t> arrived;  ///< A word for each side and parity, in memory of the host.
};

/// The part of the body that this process computes: its memory, which is in the global address space, and where that of
/// the others is. Thread rule: the worker's thread. Space and team outlive it.
class Block {
 public:
  /// Collective. Throws no_memory, and what the team's calls fail with.
  Block(brant::GlobalSpace& space, brant::Team& team, const Decomposition& cut, brant::MemoryKind kind);

  [[nodiscard]] const Decomposition& cut() const noexcept { return cut_; }
  [[nodiscard]] brant::MemoryKind kind() const noexcept { return kind_; }
  [[nodiscard]] const Body& body() const noexcept { return body_; }
  [[nodiscard]] const Split& split() const noexcept { return split_; }
  [[nodiscard]] std::optional<int> neighbour(int side) const noexcept { return cut_.neighbour(rank_, side); }

  /// Temperatures before a step; those after it are `field(step + 1)`.
  [[nodiscard]] double* field(std::int64_t step) const noexcept { return fields_[parity_of(step)]; }
  [[nodiscard]] double* faces(std::int64_t step) const noexcept { return faces_[parity_of(step)]; }
  [[nodiscard]] double* ghosts(std::int64_t step) const noexcept { return ghosts_[parity_of(step)]; }

  /// The face of a side once it is packed; where the neighbour's lands here, and there.
  [[nodiscard]] brant::ConstBuffer face(int side, std::int64_t step) const;
  [[nodiscard]] brant::Buffer landing(int side, std::int64_t step) const;
  [[nodiscard]] brant::GlobalPtr<double> landing_there(int side, std::int64_t step) const;

  /// The word which says that the neighbour's face of a step has landed, here and there.
  [[nodiscard]] std::uint64_t arrived(int side, std::int64_t step) const noexcept;
  [[nodiscard]] brant::GlobalPtr<std::uint64_t> arrived_there(int side, std::int64_t step) const;

  /// The field of any process.
  [[nodiscard]] brant::GlobalPtr<double> field_of(int rank, std::int64_t step) const {
    return all_[static_cast<std::size_t>(rank)].field[parity_of(step)];
  }
  /// Of all faces, in each step.
  [[nodiscard]] std::size_t sent_bytes() const;

 private:
  [[nodiscard]] std::size_t face_bytes(int side) const noexcept {
    return static_cast<std::size_t>(face_cells(body_.cells, side)) * sizeof(double);
  }

  Decomposition cut_;
  int rank_;
  brant::MemoryKind kind_;
  Body body_;
  std::array<std::int64_t, kFaces> offset_there_{};  ///< Of this block's face among the ghosts of its neighbour.
  Split split_;
  brant::GlobalSegment memory_;
  brant::GlobalSegment words_;
  std::array<double*, kParities> fields_{};
  std::array<double*, kParities> faces_{};
  std::array<double*, kParities> ghosts_{};
  std::uint64_t* arrived_ = nullptr;
  std::vector<Places> all_;  ///< By rank.
};

}  // namespace heat
