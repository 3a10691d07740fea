#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "brant/core/runtime.h"
#include "models/halo/layout.h"
#include "models/halo/transfers.h"
#include "ops/mapping/table.h"

namespace brant::halo {

/// A process whose blocks lie beside those of this one, and its fields as this process sees them.
struct Neighbour {
  int rank = 0;
  std::span<const Link> sends;
  std::span<const Link> receives;
  std::vector<int> blocks;           ///< Of it, those that this process writes into, in ascending order.
  std::vector<std::size_t> fields;   ///< Of this process, those that it writes into.
  std::vector<MappedMemory> mapped;  ///< The fields of `blocks`.
  std::size_t landing_bytes = 0;     ///< Of narrow rows that come from it,
  Memory landing;                    ///< and where they land: it writes there.
  std::size_t far_bytes = 0;         ///< Likewise there.
  MappedMemory far_landing;
  std::size_t words_in_lines = 0;  ///< Either way; then lines land, and nothing else. 0: no lines.

  [[nodiscard]] std::size_t place_of(int block) const noexcept;
  /// Of a landing for so many bytes of narrow rows in each of some turns.
  [[nodiscard]] std::size_t landing_size(std::size_t bytes, std::size_t turns) const noexcept;
};

/// All of them, in the order of the links; empty spans are none of theirs.
std::vector<Neighbour> neighbours_of(const Layout& layout);

/// What a neighbour needs to write into a field of this process.
struct FieldOffer {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  port::ExportRecord record;
};

/// Throws not_supported (no other process can map it) and the like, naming the block and the cure.
FieldOffer offer_field(Runtime& runtime, Buffer field, int block);

/// Maps a field of a neighbour. Waits for its answer where it has to free memory first. Throws not_supported,
/// peer_lost, timed_out, and what the device says.
MappedMemory map_field(Runtime& runtime, int rank, int block, const FieldOffer& offer, bool for_device);

}  // namespace brant::halo
