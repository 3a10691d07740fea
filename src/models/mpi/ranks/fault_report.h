#pragma once

#include "models/mpi/ranks/rank_scheduler.h"

namespace brant::mpi {

/// From now on a rank whose program touches memory that is not there says so, and whether it has used up its stack,
/// before that ends the process. On the calling thread, which lets the ranks take turns. `first`: the number of the
/// first rank of this process. A program that handles the signal itself does so instead.
void report_faults(const RankScheduler& scheduler, int first) noexcept;

}  // namespace brant::mpi
