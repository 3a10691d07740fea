#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "brant/coll/team.h"
#include "stencil.h"

/// The field of all processes as a whole. A plane of a block travels at a time, so that no process needs memory for
/// more than its own blocks.
namespace jacobi {

/// Writes the field as a float64 array of shape (NX, NY, NZ) in Fortran order, for numpy.load: beside its final name
/// first, so that there is never half a file. Collective. Throws io_error on rank 0.
void write_field(const Share& share, brant::Team& team, const std::string& name);

/// Throws limit_reached, with the cure, if the problem is too large to be checked in reasonable time and memory.
void require_checkable(const Extent& global, std::int64_t iterations);

/// Solves the same problem on rank 0, in the most obvious way and sharing nothing with the program but the formula, and
/// compares every bit of the field, and of `residual` if there is one: the largest change of a cell in iteration number
/// `residual->iteration`. Collective. Throws internal on rank 0, naming the first difference.
void check_field(const Share& share, brant::Team& team, std::int64_t iterations,
                 const std::optional<Residual>& residual);

/// Looks at the ghost cells that are cells of other blocks, where the field holds start values. Collective. Throws
/// internal on rank 0, with the first rank that has a wrong one.
void check_ghosts(const Share& share, brant::Team& team);

}  // namespace jacobi
