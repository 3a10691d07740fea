#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "bindings/torch/call_streams.h"
#include "bindings/torch/gpu.h"
#include "bindings/torch/group.h"
#include "bindings/torch/tensors.h"
#include "bindings/torch/work.h"

namespace brant::distributed {

/// A process group of torch.distributed. Calls may come from any thread; all members make the same ones in the same
/// order.
class BrantBackend final : public c10d::Backend {
 public:
  using Tensor = at::Tensor;
  using List = std::vector<at::Tensor>;
  using Lists = std::vector<std::vector<at::Tensor>>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  /// Collective over the members. `gpu`: with which one this process works, -1: with none; for the default group.
  static c10::intrusive_ptr<BrantBackend> create(const c10d::DistributedBackendOptions& options, int gpu);
  /// Of a group that exists: see create.
  BrantBackend(std::shared_ptr<Job> job, Group& group, const c10d::DistributedBackendOptions& options);
  ~BrantBackend() override;

  const std::string getBackendName() const override { return "brant"; }  // NOLINT(readability-const-return-type)
  c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }
  void setTimeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }
  uint64_t getSequenceNumberForGroup() override { return number_.load(); }
  void setSequenceNumberForGroup() override {}
  /// As `destroy_process_group` asks for.
  void shutdown();

  WorkPtr allreduce(List& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(List& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr broadcast(List& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr reduce(List& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(Lists& outputs, List& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(Tensor& output, Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(Lists& outputs, List& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(List& outputs, List& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr reduce_scatter(List& outputs, Lists& inputs, const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(Tensor& output, Tensor& input, const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(List& outputs, List& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall(List& outputs, List& inputs, const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall_base(Tensor& output, Tensor& input, std::vector<int64_t>& output_sizes,
                        std::vector<int64_t>& input_sizes, const c10d::AllToAllOptions& options) override;
  WorkPtr gather(Lists& outputs, List& inputs, const c10d::GatherOptions& options) override;
  WorkPtr scatter(List& outputs, Lists& inputs, const c10d::ScatterOptions& options) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  WorkPtr send(List& tensors, int to, int tag) override;
  WorkPtr recv(List& tensors, int from, int tag) override;
  WorkPtr recvAnysource(List& tensors, int tag) override;
  /// Calls in between go as always, and the last one gives what waits for all.
  void startCoalescing() override;
  WorkPtr endCoalescing() override;

 private:
  using Calls = std::vector<Collective>;
  using Shared = std::shared_ptr<Tensors>;
  using WorkOfUs = c10::intrusive_ptr<BrantWork>;

  [[nodiscard]] Shared make_tensors(const char* what) const { return std::make_shared<Tensors>(what, gpu_); }
  WorkOfUs make_work(c10d::OpType type, const Shared& tensors, const List& outputs);
  /// Posts by `post`, which is given whom to tell; of tensors on the GPU when their stream has come there.
  WorkPtr begin(c10d::OpType type, const Shared& tensors, List outputs, bool waits, std::function<void(Done)> post);
  WorkPtr collect(c10d::OpType type, const Shared& tensors, List outputs, bool waits, const Calls& calls);
  /// By a stream of the GPU. Null: streams do not carry these calls out.
  WorkPtr collect_on_stream(c10d::OpType type, const Shared& tensors, const List& outputs, bool waits,
                            const Calls& calls);
  void queue(const WorkOfUs& work, const Shared& tensors, bool waits, const Calls& calls);
  void wait_for_streams() noexcept;
  WorkPtr note(WorkPtr work);
  WorkPtr exchange(c10d::OpType type, const Shared& tensors, List outputs, bool waits, List sent, List received);
  void require_root(std::int64_t root, const char* what) const;

  std::shared_ptr<Job> job_;
  Group& group_;
  std::chrono::milliseconds timeout_;
  c10::intrusive_ptr<Options> options_;
  std::atomic<std::uint64_t> number_ = 0;
  const Gpu gpu_;
  CallStreams streams_;
  std::mutex coalescing_mutex_;
  std::optional<std::vector<WorkPtr>> coalesced_;
};

/// Of the default group that was made last, for tests that put another device under it. Null: there is none.
Runtime* runtime_of_default() noexcept;

}  // namespace brant::distributed
