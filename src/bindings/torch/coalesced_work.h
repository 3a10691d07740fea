#pragma once

#include <algorithm>
#include <chrono>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

namespace brant::distributed {

/// Calls that a program began together, and waits for together.
class CoalescedWork final : public c10d::Work {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  CoalescedWork(int rank, std::vector<WorkPtr> works) : Work(rank, c10d::OpType::COALESCED), works_(std::move(works)) {}

  bool isCompleted() override {
    return std::ranges::all_of(works_, [](const WorkPtr& work) { return work->isCompleted(); });
  }
  bool isSuccess() const override {
    return std::ranges::all_of(works_, [](const WorkPtr& work) { return work->isSuccess(); });
  }
  std::exception_ptr exception() const override {
    for (const WorkPtr& work : works_) {
      if (std::exception_ptr error = work->exception()) return error;
    }
    return nullptr;
  }
  void synchronize() override { wait(kNoTimeout); }
  bool wait(std::chrono::milliseconds timeout) override {
    for (const WorkPtr& work : works_) work->wait(timeout);
    return true;
  }
  void abort() override {}

 private:
  const std::vector<WorkPtr> works_;
};

}  // namespace brant::distributed
