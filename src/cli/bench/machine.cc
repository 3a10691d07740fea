#include "cli/bench/machine.h"

#include "cli/info/host.h"
#include "cli/info/version.h"
#include "core/engine.h"
#include "port/wire/ucx/open.h"

namespace brant::cli::bench {

Machine describe_machine(Runtime& runtime) {
  Engine& engine = runtime.worker().engine();
  Machine machine;
  machine.brant = info::build_version();
  if (engine.wire().capabilities().name == "ucx") machine.ucx = port::ucx_version();
  const port::DeviceCapabilities& device = engine.device().capabilities();
  if (device.offers(MemoryKind::cuda)) {
    machine.gpu = device.name;
    machine.cuda = device.driver;
  }
  machine.cpu = info::cpu_name();
  machine.host = info::host_name();
  return machine;
}

}  // namespace brant::cli::bench
