#pragma once

#include <memory>

#include "port/boot.h"

namespace brant::port {

/// The bootstrap this process was started with, as detect_starter() finds it: the socket of `brant run`, then a PMIx
/// server (mpirun, srun --mpi=pmix, prterun), the socket of a launcher that speaks PMI-1 (MPICH's mpiexec), the store
/// of torchrun, otherwise a job of one. BRANT_BOOTSTRAP=launcher|pmix|pmi|torchrun|single forces one. Throws Error if
/// the choice cannot be opened, and for a launcher that is recognised but not spoken (Slurm without PMIx, PALS): a
/// program that was started N times never silently runs as N jobs of one.
std::unique_ptr<Boot> make_boot();

}  // namespace brant::port
