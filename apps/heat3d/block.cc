#include "block.h"

#include <algorithm>
#include <atomic>
#include <span>

#include "brant/coll/collectives.h"

namespace heat {
namespace {

constexpr std::int64_t kAlignment = 32;                 // doubles: 256 bytes, as on devices
constexpr std::size_t kMappableBytes = 16384;           // what other processes can map, of host memory
constexpr std::size_t kWords = kFaces * kParities * 8;  // a line of the cache for each

std::int64_t aligned(std::int64_t doubles) noexcept { return (doubles + kAlignment - 1) / kAlignment * kAlignment; }

std::size_t word_of(int side, std::int64_t step) noexcept {
  return (static_cast<std::size_t>(side) * kParities + parity_of(step)) * 8;
}

int opposite(int side) noexcept { return side ^ 1; }

Body body_of(const Decomposition& cut, int rank) noexcept {
  Body body;
  body.cells = extent_of(cut.block(rank));
  std::int64_t offset = 0;
  for (int side = 0; side < kFaces; ++side) {
    if (!cut.neighbour(rank, side)) continue;
    body.faces.offset[side] = offset;
    offset += aligned(face_cells(body.cells, side));
  }
  return body;
}

/// Doubles of a buffer of faces.
std::int64_t extent_of_faces(const Body& body) noexcept {
  std::int64_t end = kAlignment;
  for (int side = 0; side < kFaces; ++side) {
    if (!body.faces.open(side)) end = body.faces.offset[side] + aligned(face_cells(body.cells, side));
  }
  return end;
}

}  // namespace

Block::Block(brant::GlobalSpace& space, brant::Team& team, const Decomposition& cut, brant::MemoryKind kind)
    : cut_(cut), rank_(team.rank()), kind_(kind), body_(body_of(cut, rank_)) {
  std::array<bool, kFaces> has_neighbour{};
  for (int side = 0; side < kFaces; ++side) {
    const std::optional<int> there = neighbour(side);
    const auto at = static_cast<std::size_t>(side);
    has_neighbour[at] = there.has_value();
    if (there) offset_there_[at] = body_of(cut, *there).faces.offset[opposite(side)];
  }
  split_ = split_block(body_.cells, has_neighbour);
  const auto cells = static_cast<std::size_t>(aligned(volume(body_.cells)));
  const auto faces = static_cast<std::size_t>(extent_of_faces(body_));
  memory_ = space.create(kind, std::max(kParities * (cells + 2 * faces) * sizeof(double), kMappableBytes));
  words_ = space.create(brant::MemoryKind::host, std::max(kWords * sizeof(std::uint64_t), kMappableBytes));
  Places mine;
  for (std::size_t parity = 0; parity < kParities; ++parity) {
    mine.field[parity] = memory_.allocate<double>(cells, kAlignment * sizeof(double));
    mine.ghosts[parity] = memory_.allocate<double>(faces, kAlignment * sizeof(double));
    fields_[parity] = memory_.local(mine.field[parity]);
    ghosts_[parity] = memory_.local(mine.ghosts[parity]);
    faces_[parity] = memory_.local(memory_.allocate<double>(faces, kAlignment * sizeof(double)));
  }
  mine.arrived = words_.allocate<std::uint64_t>(kWords, 64);
  arrived_ = words_.local(mine.arrived);
  std::fill_n(arrived_, kWords, 0);
  all_.resize(static_cast<std::size_t>(team.size()));
  team.run(brant::allgather(brant::ConstBuffer(&mine, sizeof mine), brant::Buffer(std::span(all_))))
      .or_throw("the places of the blocks did not come");
}

brant::ConstBuffer Block::face(int side, std::int64_t step) const {
  return {faces(step) + body_.faces.offset[side], face_bytes(side), kind_};
}

brant::Buffer Block::landing(int side, std::int64_t step) const {
  return {ghosts(step) + body_.faces.offset[side], face_bytes(side), kind_};
}

brant::GlobalPtr<double> Block::landing_there(int side, std::int64_t step) const {
  const Places& places = all_[static_cast<std::size_t>(*neighbour(side))];
  return places.ghosts[parity_of(step)] + offset_there_[static_cast<std::size_t>(side)];
}

std::uint64_t Block::arrived(int side, std::int64_t step) const noexcept {
  return std::atomic_ref(arrived_[word_of(side, step)]).load(std::memory_order_acquire);
}

brant::GlobalPtr<std::uint64_t> Block::arrived_there(int side, std::int64_t step) const {
  const Places& places = all_[static_cast<std::size_t>(*neighbour(side))];
  return places.arrived + static_cast<std::ptrdiff_t>(word_of(opposite(side), step));
}

std::size_t Block::sent_bytes() const {
  std::size_t bytes = 0;
  for (int side = 0; side < kFaces; ++side) {
    if (neighbour(side)) bytes += face_bytes(side);
  }
  return bytes;
}

}  // namespace heat
