#include "bench/runner/machine.h"

#include "cli/info/host.h"
#include "cli/info/version.h"
#include "core/engine.h"
#include "port/wire/ucx/open.h"

namespace brant::bench {

Machine describe_machine() {
  Machine machine;
  machine.brant = cli::info::build_version();
  machine.cpu = cli::info::cpu_name();
  machine.host = cli::info::short_host_name();
  return machine;
}

Machine describe_machine(const port::Device& device) {
  Machine machine = describe_machine();
  const port::DeviceCapabilities& capabilities = device.capabilities();
  if (capabilities.offers(MemoryKind::cuda)) {
    machine.gpu = capabilities.name;
    machine.cuda = capabilities.driver;
  }
  return machine;
}

Machine describe_machine(Runtime& runtime) {
  Engine& engine = runtime.worker().engine();
  Machine machine = describe_machine(engine.device());
  if (engine.wire().capabilities().name == "ucx") machine.ucx = port::ucx_version();
  return machine;
}

}  // namespace brant::bench
