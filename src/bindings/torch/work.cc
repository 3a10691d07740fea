#include "bindings/torch/work.h"

#include <c10/core/StreamGuard.h>
#include <c10/util/Exception.h>

#include <mutex>
#include <thread>
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

bool BrantWork::isCompleted() {
  if (queued_ && !done_.load(std::memory_order_acquire)) look_at_stream();
  return done_.load(std::memory_order_acquire);
}

void BrantWork::look_at_stream() {
  try {
    if (!captured_ && !end_->query()) return;
    const std::string fault = fault_();
    const std::scoped_lock lock(mutex_);
    if (!fault.empty() && error_ == nullptr) error_ = error_of({Status::canceled, fault});
  } catch (const std::exception& error) {
    const std::scoped_lock lock(mutex_);
    error_ = error_of({Status::device_failed, std::string("process group: the GPU reports a fault: ") + error.what()});
  }
  done_.store(true, std::memory_order_release);
}

void BrantWork::report_late(std::chrono::milliseconds timeout) const {
  C10_THROW_ERROR(DistBackendError, std::string("process group: ") + c10d::opTypeToString(opType_) +
                                        " was not done within " + std::to_string(timeout.count()) +
                                        " ms; it goes on, and its tensors stay in use");
}

void BrantWork::wait_for_host(std::chrono::milliseconds timeout) {
  if (isCompleted()) return;
  const bool limited = timeout != kNoTimeout;
  const auto deadline =
      limited ? std::chrono::steady_clock::now() + timeout : std::chrono::steady_clock::time_point::max();
  const std::shared_ptr<Job> job = job_.lock();  // without a job all has ended
  const bool in_time = job == nullptr || job->wait([this] { return isCompleted(); }, deadline);
  if (!in_time) report_late(timeout);
}

/// The thread goes on at once, as PyTorch has it for GPUs, unless it says how long it would wait.
void BrantWork::wait_for_stream(std::chrono::milliseconds timeout) {
  if (timeout == kNoTimeout) return;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!isCompleted()) {
    if (std::chrono::steady_clock::now() > deadline) report_late(timeout);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

bool BrantWork::wait(std::chrono::milliseconds timeout) {
  queued_ ? wait_for_stream(timeout) : wait_for_host(timeout);
  if (const std::exception_ptr error = exception()) std::rethrow_exception(error);
  if (end_ != nullptr) {
    const c10::Stream current = Gpu(stream_->device_index()).current();
    if (current != *stream_) end_->block(current);
  }
  return true;
}

/// Callbacks find what they queue put behind the call.
void BrantWork::tell(c10::ivalue::Future& future) const {
  std::optional<c10::StreamGuard> on_stream;
  if (stream_) on_stream.emplace(*stream_);
  if (error_ != nullptr) {
    future.setError(error_);
  } else {
    future.markCompleted(c10::IValue(outputs_));
  }
}

c10::intrusive_ptr<c10::ivalue::Future> BrantWork::getFuture() {
  std::unique_lock lock(mutex_);
  if (future_ != nullptr) return future_;
  std::vector<c10::Device> devices;
  if (stream_) devices.push_back(stream_->device());
  future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()), devices);
  if (!queued_ && !done_.load(std::memory_order_acquire)) return future_;
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

void BrantWork::finish_on_stream(std::shared_ptr<c10::Event> end, std::function<std::string()> fault) {
  end_ = std::move(end);
  fault_ = std::move(fault);
  captured_ = is_captured(*stream_);
  queued_ = true;
  finish(nullptr);  // for profilers: the CPU's part
}

}  // namespace brant::distributed
