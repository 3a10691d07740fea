#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "bindings/torch/job.h"

namespace brant::distributed {

/// What PyTorch is given for a call: told of its end by `finish_with`, on whichever thread moved the network.
class BrantWork final : public c10d::Work {
 public:
  BrantWork(const std::shared_ptr<Job>& job, int rank, c10d::OpType type, const char* title, std::uint64_t number,
            std::chrono::milliseconds timeout, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> outputs);

  bool isCompleted() override { return done_.load(std::memory_order_acquire); }
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

 private:
  void tell(c10::ivalue::Future& future) const;

  const std::weak_ptr<Job> job_;
  const std::uint64_t number_;
  const std::chrono::milliseconds timeout_;
  const std::vector<at::Tensor> outputs_;
  int source_ = -1;
  std::exception_ptr error_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;  ///< Once it was asked for; guarded by `mutex_` of the base.
  std::atomic<bool> done_ = false;
};

}  // namespace brant::distributed
