#pragma once

#include <functional>
#include <span>
#include <string>

#include "block.h"
#include "npy.h"
#include "patch.h"
#include "star.h"

/// The field of all processes as a whole: read from a file, written to one, compared with a serial run. A plane of a
/// block at a time, so that no process ever needs memory for more than its own block.
namespace jacobi {

/// Sets this process's block of the current field from the file.
void load_block(Block& block, const NpyReader& file);

/// Called on the root for every plane of every block: the global position of its first cell, its extent along x and y,
/// and its cells (rows `row` doubles apart).
struct PlaneView {
  Cell first;
  std::int64_t count_x = 0;
  std::int64_t count_y = 0;
  std::int64_t row = 0;
  const double* cells = nullptr;

  [[nodiscard]] std::span<const double> line(std::int64_t y) const noexcept {
    return {cells + y * row, static_cast<std::size_t>(count_x)};
  }
};

/// Brings the current field to the root, plane by plane in the order of the blocks. Collective. An exception of `visit`
/// leaves this function at once and ends the job.
void gather(const Blocks& blocks, const Decomposition& decomposition, Star& star,
            const std::function<void(const PlaneView&)>& visit);

/// Writes the field as .npy: beside its final name first, so that there is never half a file. Collective; throws on all
/// processes.
void write_field(const Blocks& blocks, const Decomposition& decomposition, Star& star, const std::string& name);

}  // namespace jacobi
