#include "port/boot/select.h"

#include <string_view>

#include <fmt/format.h>

#include "base/env.h"
#include "port/boot/launcher/launcher_boot.h"
#include "port/boot/pmix/pmix_boot.h"
#include "port/boot/single/single_boot.h"

namespace brant::port {
namespace {

bool is_set(const char* name) { return !env(name).empty(); }

/// A launcher that left its marks in the environment but whose protocol brant does not speak; empty if none.
std::string_view foreign_launcher() {
  if (is_set("PMI_FD") || is_set("PMI_PORT"))
    return "a PMI-1 launcher (PMI_FD or PMI_PORT is set: MPICH's mpiexec, srun --mpi=pmi2)";
  if (is_set("SLURM_PROCID")) return "Slurm without a PMIx server (SLURM_PROCID is set)";
  if (is_set("RANK") && is_set("WORLD_SIZE")) return "a torchrun-like launcher (RANK and WORLD_SIZE are set)";
  if (is_set("OMPI_COMM_WORLD_SIZE")) return "Open MPI without a PMIx server (OMPI_COMM_WORLD_SIZE is set)";
  return {};
}

std::unique_ptr<Boot> forced(std::string_view name) {
  if (name == "launcher") return open_launcher_boot();
  if (name == "pmix") return open_pmix_boot();
  if (name == "single") return open_single_boot();
  throw Error(Status::invalid_argument,
              fmt::format("BRANT_BOOTSTRAP='{}' is unknown; there are launcher (brant run), pmix (mpirun, "
                          "srun --mpi=pmix) and single (a job of one process)",
                          name));
}

}  // namespace

std::unique_ptr<Boot> make_boot() {
  if (const std::string_view name = env("BRANT_BOOTSTRAP"); !name.empty()) return forced(name);
  if (launcher_present()) return open_launcher_boot();
  if (pmix_server_present()) return open_pmix_boot();
  if (const std::string_view foreign = foreign_launcher(); !foreign.empty()) {
    throw Error(Status::not_supported,
                fmt::format("this process seems to be started by {}, and this bootstrap is not built yet. Use `brant "
                            "run -n N -- PROGRAM` on one host, `srun --mpi=pmix` or Open MPI's mpirun on several; "
                            "BRANT_BOOTSTRAP=single runs the process as a job of one",
                            foreign));
  }
  // A descendant of a rank has the variable without the socket; taking it for a job of one would hide a lost rank.
  if (is_set("BRANT_BOOT_FD")) return open_launcher_boot();
  return open_single_boot();
}

}  // namespace brant::port
