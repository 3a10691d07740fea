#include "models/mpi/memory_alloc_kinds.h"

#include "brant/core/device.h"
#include "models/mpi/calls.h"
#include "models/mpi/process.h"
#include "port/memory.h"

namespace brant::mpi {

std::string memory_alloc_kinds() {
  if (process() == nullptr) return {};
  const port::DeviceCapabilities& device = process()->runtime().device().inner().capabilities();
  std::string kinds = "mpi,system";
  if (device.offers(MemoryKind::cuda)) kinds += ",cuda,cuda:host,cuda:device";
  if (device.offers(MemoryKind::cuda_managed)) kinds += ",cuda:managed";
  return kinds;
}

MPI_Info publish_used(const Info& info) {
  Info used;
  used.entries = info.entries;
  used.set(kMemoryAllocKinds, memory_alloc_kinds());
  return publish_copy(used);
}

}  // namespace brant::mpi
