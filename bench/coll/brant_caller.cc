#include "bench/coll/caller.h"
#include "bench/runner/space.h"
#include "brant/core/runtime.h"

namespace brant::bench {
namespace {

class BrantCaller final : public CollCaller {
 public:
  BrantCaller(TeamWay way, Alloc alloc) : alloc_(alloc), team_(Team::world(runtime_, {.way = way})) {}

  [[nodiscard]] int rank() const override { return team_.rank(); }
  [[nodiscard]] int size() const override { return team_.size(); }

  CollMemory allocate(std::size_t floats) override {
    auto space = std::make_shared<Space>(Space::make(runtime_, MemoryKind::host, floats * sizeof(float), alloc_));
    return {{static_cast<float*>(space->part(0, 0).data), floats}, space};
  }

  void call(const CollCall& call) override { require(team_.run(described(call))); }
  void greatest(std::span<double> values) override {
    require(team_.run(allreduce(Buffer(values, MemoryKind::host), DataType::f64, ReduceOp::max)));
  }
  double sum(double value) override {
    require(team_.run(allreduce(Buffer(&value, sizeof(value), MemoryKind::host), DataType::f64, ReduceOp::sum)));
    return value;
  }

  [[nodiscard]] std::string path() const override { return std::string(team_.journal().back().algorithm); }
  [[nodiscard]] std::string peer() const override { return {}; }
  [[nodiscard]] std::string peer_version() const override { return {}; }
  [[nodiscard]] Machine machine() override { return describe_machine(runtime_); }

 private:
  [[nodiscard]] Collective described(const CollCall& call) const {
    const std::size_t block = call.bytes / static_cast<std::size_t>(team_.size());
    const auto in = [&](std::size_t bytes) { return ConstBuffer(call.in, bytes, MemoryKind::host); };
    const auto out = [&](std::size_t bytes) { return Buffer(call.out, bytes, MemoryKind::host); };
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
  Team team_;
};

}  // namespace

std::unique_ptr<CollCaller> make_brant_caller(TeamWay way, Alloc alloc) {
  return std::make_unique<BrantCaller>(way, alloc);
}

}  // namespace brant::bench
