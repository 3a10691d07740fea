#include "port/boot/select.h"

#include <string_view>

#include <fmt/format.h>

#include "base/env.h"
#include "port/boot/detect.h"
#include "port/boot/launcher/launcher_boot.h"
#include "port/boot/pmi/pmi_boot.h"
#include "port/boot/pmix/pmix_boot.h"
#include "port/boot/single/single_boot.h"
#include "port/boot/tcp_store/tcp_store_boot.h"

namespace brant::port {
namespace {

std::unique_ptr<Boot> forced(std::string_view name) {
  if (name == "launcher") return open_launcher_boot();
  if (name == "pmix") return open_pmix_boot();
  if (name == "pmi") return open_pmi_boot();
  if (name == "torchrun") return open_tcp_store_boot();
  if (name == "single") return open_single_boot();
  throw Error(
      Status::invalid_argument,
      fmt::format(
          "BRANT_BOOTSTRAP='{}' is unknown; there are launcher (brant run), pmix (mpirun, "
          "srun --mpi=pmix), pmi (MPICH's mpiexec, srun --mpi=pmi2), torchrun and single (a job of one process)",
          name));
}

}  // namespace

std::unique_ptr<Boot> make_boot() {
  if (const std::string_view name = env("BRANT_BOOTSTRAP"); !name.empty()) return forced(name);
  const Detection detection = detect_starter();
  switch (detection.starter) {
    case Starter::brant_run: return open_launcher_boot();
    case Starter::pmix: return open_pmix_boot();
    case Starter::pmi: return open_pmi_boot();
    case Starter::torchrun: return open_tcp_store_boot();
    case Starter::nobody: return open_single_boot();
    case Starter::not_spoken: break;
  }
  const std::string cure = detection.cure.empty() ? "Use `brant run -n N -- PROGRAM` on one host, `srun --mpi=pmix` or "
                                                    "Open MPI's mpirun on several"
                                                  : detection.cure;
  throw Error(Status::not_supported,
              fmt::format("this process seems to be started by {} ({}), and this bootstrap is not built yet. {}; "
                          "BRANT_BOOTSTRAP=single runs the process as a job of one",
                          detection.launcher, detection.evidence.front(), cure));
}

}  // namespace brant::port
