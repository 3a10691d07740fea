#include "cli/explain/facts.h"
#include "ops/courier/courier_options.h"
#include "port/link/shared_memory/open.h"
#include "port/memory/adapters.h"
#include "port/wire/ucx/open.h"

namespace brant::cli::explain {

Facts gather_facts() {
  Facts facts;
  facts.ucx_version = port::ucx_version();
  facts.wire_kinds = port::open_ucx_wire({})->capabilities().kinds;
  facts.shares_memory = port::open_links(1) != nullptr;
  const port::memory::CudaProbe probe = port::memory::probe_cuda();
  for (const port::memory::CudaDeviceSummary& device : probe.devices) facts.gpus.push_back(device.uuid);
  facts.gpu_reason = probe.reason;
  facts.cuda_driver = probe.devices.empty() ? "" : probe.driver;
  facts.courier_bytes = CourierOptions::from_environment(MemoryKind::cuda).largest();
  facts.emulated_courier_bytes = CourierOptions::from_environment(MemoryKind::emulated).largest();
  return facts;
}

}  // namespace brant::cli::explain
