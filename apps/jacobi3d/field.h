#pragma once

#include <string>
#include <vector>

#include "stencil.h"
#include "team.h"

/// The field of all processes as a whole. A plane of a block travels at a time, so that no process needs memory for
/// more than its own blocks.
namespace jacobi {

/// Writes the field as a float64 array of shape (NX, NY, NZ) in Fortran order, for numpy.load: beside its final name
/// first, so that there is never half a file. Collective. Throws io_error on rank 0.
void write_field(const Share& share, Team& team, const std::string& name);

/// The same problem, solved by one process in the most obvious way and sharing nothing with the program but the
/// formula.
struct SerialRun {
  /// Throws limit_reached, with the cure, if the problem is too large to be solved in reasonable time and memory.
  static void require_feasible(const Extent& global, std::int64_t iterations);

  SerialRun(const Extent& global, std::int64_t iterations);

  Extent global;
  std::vector<double> field;  ///< x is contiguous.
  double residual = 0.0;      ///< Largest change of a cell in the last iteration.
};

/// Compares every bit of the field, and the residual of all processes (rank 0 knows it), with a serial run on rank 0.
/// Collective. Throws internal on rank 0, naming the first cell that differs.
void check_field(const Share& share, Team& team, std::int64_t iterations, double residual);

}  // namespace jacobi
