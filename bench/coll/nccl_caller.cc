#include <exception>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "bench/coll/stream_calls.h"
#include "bench/coll/team_caller.h"
#include "bench/nccl/nccl_member.h"
#include "brant/core/device.h"

namespace brant::bench {
namespace {

/// By the loop that measures ours: the same buffers, the same stream, the same graphs.
class NcclCaller final : public TeamCaller {
 public:
  NcclCaller(Runtime& runtime, Team& team, const CollBench& bench)
      : TeamCaller(runtime, team, bench), trigger_(bench.trigger), nccl_(nccl::library()) {
    require_gpu();
    port::Streams& device = *runtime.device().inner().streams();
    streams_.emplace(runtime, trigger_ == Trigger::graph, [this] {
      return fmt::format("a stream or a graph with calls of NCCL {} failed: NCCL_DEBUG=WARN says more", nccl_.version);
    });
    member_.emplace(device, streams_->stream(), nccl::Member::Place{.rank = rank(), .size = size(), .id = meet()});
  }
  ~NcclCaller() override {
    // After a failure a call may wait for others for ever: the member gives it up before anybody waits for the stream.
    if (std::uncaught_exceptions() == 0) streams_->drop_graph();
  }

  void call(const CollCall& call, std::size_t times) override {
    const auto one = [&](StreamHandle) {
      queue(call);
      return Status::ok;
    };
    if (trigger_ == Trigger::host) {
      for (std::size_t i = 0; i < times; ++i) streams_->run(call, 1, one);
      return;
    }
    if (trigger_ == Trigger::graph && connected_ != call) {
      queue(call);  // NCCL connects processes when they first move this much, which is better not captured
      member_->wait();
      connected_ = call;
    }
    streams_->run(call, times, one);
  }

  [[nodiscard]] std::string path() const override { return "nccl"; }
  [[nodiscard]] std::string title() const override {
    return fmt::format("NCCL {} ({}; {})", nccl_.version, nccl_.path, nccl::nvls_setting());
  }
  [[nodiscard]] std::string peer() const override { return "nccl"; }
  [[nodiscard]] std::string peer_version() const override { return nccl_.version; }

 private:
  void require_gpu() const {
    if (memory() == MemoryKind::cuda || (nccl_.stands_in && memory() != MemoryKind::host)) return;
    throw Error(
        Status::not_supported,
        fmt::format("--peer nccl: NCCL moves memory of GPUs only, and rank {} has {} memory. Cure: measure on a "
                    "machine with a GPU for each process, without BRANT_GPU=emulated; `brant info` lists them",
                    rank(), memory_kind_name(memory())));
  }

  nccl::UniqueId meet() {
    nccl::UniqueId id{};
    if (rank() == 0) id = nccl::make_unique_id();
    require(team().run(broadcast(Buffer(&id, sizeof(id), MemoryKind::host), 0)));
    return id;
  }

  void queue(const CollCall& call) {
    const std::size_t all = call.bytes / sizeof(float), block = all / static_cast<std::size_t>(size());
    switch (call.kind) {
      case CollectiveKind::broadcast: return member_->broadcast(call.out, all);
      case CollectiveKind::allgather: return member_->allgather(call.in, call.out, block);
      case CollectiveKind::reduce_scatter: return member_->reduce_scatter(call.in, call.out, block);
      case CollectiveKind::alltoall: return member_->alltoall(call.in, call.out, block);
      default: return member_->allreduce(call.in, call.out, all);
    }
  }

  const Trigger trigger_;
  const nccl::Library& nccl_;
  std::optional<StreamCalls> streams_;
  std::optional<nccl::Member> member_;  ///< Gone before the stream, and behind the graph.
  std::optional<CollCall> connected_;   ///< Has been carried out once.
};

}  // namespace

std::unique_ptr<CollCaller> make_nccl_caller(Runtime& runtime, Team& team, const CollBench& bench) {
  return std::make_unique<NcclCaller>(runtime, team, bench);
}

}  // namespace brant::bench
