#include "bench/coll/team_caller.h"

#include <memory>
#include <vector>

#include "bench/runner/space.h"

namespace brant::bench {
namespace {

/// What the CPU has of memory of the device, and that memory.
struct DeviceFloats {
  std::vector<float> here;
  Memory there;
};

Buffer here(const CollMemory& memory) { return {memory.floats.data(), memory.floats.size_bytes(), MemoryKind::host}; }

Buffer there(const CollMemory& memory, MemoryKind kind) { return {memory.there, memory.floats.size_bytes(), kind}; }

}  // namespace

TeamCaller::TeamCaller(Runtime& runtime, Team& team, const CollBench& bench)
    : runtime_(runtime),
      team_(team),
      alloc_(bench.alloc),
      kind_(bench.device ? runtime.device_kind() : MemoryKind::host) {}

CollMemory TeamCaller::allocate(std::size_t floats) {
  if (kind_ != MemoryKind::host) {
    auto both = std::make_shared<DeviceFloats>();
    both->here.resize(floats);
    both->there = runtime_.allocate(kind_, floats * sizeof(float));
    return {both->here, static_cast<float*>(both->there.data()), both};
  }
  auto space = std::make_shared<Space>(Space::make(runtime_, MemoryKind::host, floats * sizeof(float), alloc_));
  auto* const data = static_cast<float*>(space->part(0, 0).data);
  return {{data, floats}, data, space};
}

void TeamCaller::bring(CollMemory& memory) {
  if (kind_ != MemoryKind::host) runtime_.copy(there(memory, kind_), here(memory));
}

void TeamCaller::fetch(CollMemory& memory) {
  if (kind_ != MemoryKind::host) runtime_.copy(here(memory), there(memory, kind_));
}

void TeamCaller::greatest(std::span<double> values) {
  require(team_.run(allreduce(Buffer(values, MemoryKind::host), DataType::f64, ReduceOp::max)));
}

double TeamCaller::sum(double value) {
  require(team_.run(allreduce(Buffer(&value, sizeof(value), MemoryKind::host), DataType::f64, ReduceOp::sum)));
  return value;
}

void TeamCaller::require(const OpResult& result) const {
  if (!result.ok()) throw Error(result.status, team_.fault().empty() ? "a collective failed" : team_.fault());
}

}  // namespace brant::bench
