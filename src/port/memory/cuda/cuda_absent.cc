// The adapter of a build for which cuda.h was not found.
#include "port/memory/adapters.h"
#include "port/memory/gpu_topology.h"

namespace brant::port::memory {
namespace {

constexpr const char* kReason = "brant was built without the CUDA headers; build it again after 'make setup'";

}  // namespace

CudaProbe probe_cuda() { return {.devices = {}, .reason = kReason, .driver = {}}; }

GpuTopology probe_gpu_topology(const CudaProbe&) { return {}; }

std::unique_ptr<Device> open_cuda_device(int) { throw Error(Status::not_supported, std::string("no GPU: ") + kReason); }

}  // namespace brant::port::memory
