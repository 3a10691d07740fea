#include <memory>
#include <optional>
#include <string>

#include "bench/coll/stream_calls.h"
#include "bench/coll/team_caller.h"

namespace brant::bench {
namespace {

class BrantCaller final : public TeamCaller {
 public:
  BrantCaller(Runtime& runtime, Team& team, const CollBench& bench) : TeamCaller(runtime, team, bench) {
    if (bench.trigger == Trigger::host) return;
    require(team.prepare_streams());
    streams_.emplace(runtime, bench.trigger == Trigger::graph, [&team] { return team.fault(); });
  }

  void call(const CollCall& call, std::size_t times) override {
    const Collective described = describe(call);
    if (streams_) {
      on_stream_ = described;
      streams_->run(call, times, [&](StreamHandle stream) { return team().enqueue(described, stream); });
      if (const std::string fault = team().fault(); !fault.empty()) throw Error(Status::internal, fault);
      return;
    }
    for (std::size_t i = 0; i < times; ++i) require(team().run(described));
  }

  [[nodiscard]] std::string path() const override {
    return std::string(streams_ ? team().explain_on_stream(on_stream_) : team().journal().back().algorithm);
  }
  [[nodiscard]] std::string title() const override { return "brant"; }
  [[nodiscard]] std::string peer() const override { return {}; }
  [[nodiscard]] std::string peer_version() const override { return {}; }

 private:
  [[nodiscard]] Collective describe(const CollCall& call) const {
    const std::size_t block = call.bytes / static_cast<std::size_t>(size());
    const auto in = [&](std::size_t bytes) { return ConstBuffer(call.in, bytes, memory()); };
    const auto out = [&](std::size_t bytes) { return Buffer(call.out, bytes, memory()); };
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

  std::optional<StreamCalls> streams_;
  Collective on_stream_ = barrier();  ///< The last call of `streams_`.
};

}  // namespace

std::unique_ptr<CollCaller> make_brant_caller(Runtime& runtime, Team& team, const CollBench& bench) {
  return std::make_unique<BrantCaller>(runtime, team, bench);
}

}  // namespace brant::bench
