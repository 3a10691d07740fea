#include "bindings/torch/work.h"

#include <c10/util/Exception.h>

#include <mutex>
#include <utility>

namespace brant::distributed {
namespace {

std::exception_ptr error_of(const Outcome& outcome) {
  if (outcome.status == Status::ok) return nullptr;
  try {
    C10_THROW_ERROR(DistBackendError, outcome.text);
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

BrantWork::BrantWork(const std::shared_ptr<Job>& job, int rank, c10d::OpType type, const char* title,
                     std::uint64_t number, std::chrono::milliseconds timeout, const std::vector<at::Tensor>& inputs,
                     std::vector<at::Tensor> outputs)
    : Work(rank, type, title, inputs), job_(job), number_(number), timeout_(timeout), outputs_(std::move(outputs)) {}

bool BrantWork::isSuccess() const { return done_.load(std::memory_order_acquire) && error_ == nullptr; }

std::exception_ptr BrantWork::exception() const { return done_.load(std::memory_order_acquire) ? error_ : nullptr; }

bool BrantWork::wait(std::chrono::milliseconds timeout) {
  if (!isCompleted()) {
    const bool limited = timeout != kNoTimeout;
    const auto deadline =
        limited ? std::chrono::steady_clock::now() + timeout : std::chrono::steady_clock::time_point::max();
    const std::shared_ptr<Job> job = job_.lock();  // without a job all has ended
    const bool in_time = job == nullptr || job->wait([this] { return isCompleted(); }, deadline);
    if (!in_time)
      C10_THROW_ERROR(DistBackendError, std::string("process group: ") + c10d::opTypeToString(opType_) +
                                            " was not done within " + std::to_string(timeout.count()) +
                                            " ms; it goes on, and its tensors stay in use");
  }
  if (error_ != nullptr) std::rethrow_exception(error_);
  return true;
}

void BrantWork::tell(c10::ivalue::Future& future) const {
  if (error_ != nullptr) {
    future.setError(error_);
  } else {
    future.markCompleted(c10::IValue(outputs_));
  }
}

c10::intrusive_ptr<c10::ivalue::Future> BrantWork::getFuture() {
  std::unique_lock lock(mutex_);
  if (future_ != nullptr) return future_;
  future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
  if (!isCompleted()) return future_;
  const auto future = future_;
  lock.unlock();
  tell(*future);
  return future;
}

void BrantWork::finish_with(const Outcome& outcome) {
  error_ = error_of(outcome);
  source_ = outcome.source;
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::scoped_lock lock(mutex_);
    done_.store(true, std::memory_order_release);
    future = future_;
  }
  finish(error_);
  if (future != nullptr) tell(*future);  // runs what others have asked for
}

}  // namespace brant::distributed
