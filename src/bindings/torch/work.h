#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "bindings/torch/gpu.h"
#include "bindings/torch/job.h"

namespace brant::distributed {

/// What PyTorch is given for a call: told of its end by `finish_with`, on whichever thread moved the network.
class BrantWork final : public c10d::Work {
 public:
  BrantWork(const std::shared_ptr<Job>& job, int rank, c10d::OpType type, const char* title, std::uint64_t number,
            std::chrono::milliseconds timeout, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> outputs);
  /// Before it is known to others: what comes behind the call on the GPU is queued on this stream.
  void put_on(const c10::Stream& stream) { stream_ = stream; }

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override { return source_; }
  std::vector<at::Tensor> result() override { return outputs_; }
  void synchronize() override { wait(kNoTimeout); }
  bool wait(std::chrono::milliseconds timeout) override;
  void abort() override {}
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return number_; }
  std::chrono::milliseconds getTimeout() const { return timeout_; }

  void finish_with(const Outcome& outcome);
  /// The stream carries it out, and has done so when `end` has come. `fault` says what went wrong there, if something
  /// did.
  void finish_on_stream(std::shared_ptr<c10::Event> end, std::function<std::string()> fault);
  /// Of a call of the host on tensors of the GPU, which is done but for what was queued on its stream.
  void note_end(std::shared_ptr<c10::Event> end) { end_ = std::move(end); }

 private:
  void tell(c10::ivalue::Future& future) const;
  void wait_for_host(std::chrono::milliseconds timeout);
  void wait_for_stream(std::chrono::milliseconds timeout);
  [[noreturn]] void report_late(std::chrono::milliseconds timeout) const;
  /// What the stream has come to. Once.
  void look_at_stream();

  const std::weak_ptr<Job> job_;
  const std::uint64_t number_;
  const std::chrono::milliseconds timeout_;
  const std::vector<at::Tensor> outputs_;
  int source_ = -1;
  std::exception_ptr error_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;  ///< Once it was asked for; guarded by `mutex_` of the base.
  std::atomic<bool> done_ = false;
  std::optional<c10::Stream> stream_;
  std::shared_ptr<c10::Event> end_;
  bool queued_ = false;    ///< By `finish_on_stream`.
  bool captured_ = false;  ///< It runs when a graph is launched, of which nobody may ask the event.
  std::function<std::string()> fault_;
};

}  // namespace brant::distributed
