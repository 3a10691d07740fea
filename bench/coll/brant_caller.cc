#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/coll/caller.h"
#include "bench/coll/stream_calls.h"
#include "bench/runner/space.h"
#include "brant/core/runtime.h"

namespace brant::bench {
namespace {

/// What the CPU has of memory of the device, and that memory.
struct DeviceFloats {
  std::vector<float> here;
  Memory there;
};

class BrantCaller final : public CollCaller {
 public:
  explicit BrantCaller(const CollBench& bench)
      : alloc_(bench.alloc),
        kind_(bench.device ? runtime_.device_kind() : MemoryKind::host),
        team_(Team::world(runtime_, {.way = bench.way})) {
    if (bench.trigger != Trigger::host) streams_.emplace(runtime_, team_, bench.trigger == Trigger::graph);
  }

  [[nodiscard]] int rank() const override { return team_.rank(); }
  [[nodiscard]] int size() const override { return team_.size(); }

  CollMemory allocate(std::size_t floats) override {
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
  void bring(CollMemory& memory) override {
    if (kind_ != MemoryKind::host) runtime_.copy(there(memory), here(memory));
  }
  void fetch(CollMemory& memory) override {
    if (kind_ != MemoryKind::host) runtime_.copy(here(memory), there(memory));
  }

  void call(const CollCall& call, std::size_t times) override {
    const Collective described = describe(call);
    if (streams_) {
      on_stream_ = described;
      return streams_->run(described, times);
    }
    for (std::size_t i = 0; i < times; ++i) require(team_.run(described));
  }
  void greatest(std::span<double> values) override {
    require(team_.run(allreduce(Buffer(values, MemoryKind::host), DataType::f64, ReduceOp::max)));
  }
  double sum(double value) override {
    require(team_.run(allreduce(Buffer(&value, sizeof(value), MemoryKind::host), DataType::f64, ReduceOp::sum)));
    return value;
  }

  [[nodiscard]] std::string path() const override {
    return std::string(streams_ ? team_.explain_on_stream(on_stream_) : team_.journal().back().algorithm);
  }
  [[nodiscard]] MemoryKind memory() const override { return kind_; }
  [[nodiscard]] std::string peer() const override { return {}; }
  [[nodiscard]] std::string peer_version() const override { return {}; }
  [[nodiscard]] Machine machine() override { return describe_machine(runtime_); }

 private:
  static Buffer here(const CollMemory& memory) {
    return {memory.floats.data(), memory.floats.size_bytes(), MemoryKind::host};
  }
  [[nodiscard]] Buffer there(const CollMemory& memory) const {
    return {memory.there, memory.floats.size_bytes(), kind_};
  }
  [[nodiscard]] Collective describe(const CollCall& call) const {
    const std::size_t block = call.bytes / static_cast<std::size_t>(team_.size());
    const auto in = [&](std::size_t bytes) { return ConstBuffer(call.in, bytes, kind_); };
    const auto out = [&](std::size_t bytes) { return Buffer(call.out, bytes, kind_); };
    switch (call.kind) {
      case CollectiveKind::barrier: return barrier();
      case CollectiveKind::broadcast: return broadcast(out(call.bytes), 0);
      case CollectiveKind::allgather: return allgather(in(block), out(call.bytes));
      case CollectiveKind::alltoall: return alltoall(in(call.bytes), out(call.bytes));
      case CollectiveKind::reduce_scatter:
        return reduce_scatter(in(call.bytes), out(block), DataType::f32, ReduceOp::sum);
      default: return allreduce(in(call.bytes), out(call.bytes), DataType::f32, ReduceOp::sum);
    }
  }
  /// Throws what ended the team.
  void require(const OpResult& result) const {
    if (!result.ok()) throw Error(result.status, team_.fault().empty() ? "a collective failed" : team_.fault());
  }

  Runtime runtime_;
  const Alloc alloc_;
  const MemoryKind kind_;
  Team team_;
  std::optional<StreamCalls> streams_;
  Collective on_stream_ = barrier();  ///< The last call of `streams_`.
};

}  // namespace

std::unique_ptr<CollCaller> make_brant_caller(const CollBench& bench) { return std::make_unique<BrantCaller>(bench); }

}  // namespace brant::bench
