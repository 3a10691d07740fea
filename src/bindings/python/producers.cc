#include "bindings/python/producers.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "bindings/python/awaitable.h"
#include "bindings/python/process.h"
#include "brant/device.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

[[noreturn]] void refuse(Status status) {
  throw Error(status, "the stream that computes an array failed: " + std::string(status_text(status)));
}

}  // namespace

void Producers::add(const Stream& stream) {
  if (std::ranges::find(streams_, static_cast<StreamHandle>(stream)) != streams_.end()) return;
  const Status status = stream.poll();
  if (status == Status::in_progress) {
    streams_.push_back(stream);
  } else if (status != Status::ok) {
    refuse(status);
  }
}

void Producers::start(Awaitable& owner) {
  if (streams_.empty()) return;
  Runtime& runtime = Process::get().runtime();
  owner_ = &owner;
  marks_ = std::make_unique<detail::StreamMark[]>(streams_.size());
  for (std::size_t at = 0; at < streams_.size(); ++at) {
    detail::StreamMark& mark = marks_[at];
    detail::start_mark(runtime, streams_[at], mark);
    if (mark.status != Status::ok) refuse(mark.status);
    mark.op.delivered = {[](void* self, const OpResult& result) noexcept {
                           auto& producers = *static_cast<Producers*>(self);
                           if (producers.failed_ == Status::ok) producers.failed_ = result.status;
                           if (--producers.busy_ == 0) Process::get().ended(*producers.owner_);
                         },
                         this};
    ++busy_;
  }
}

bool Producers::finish_by(TimePoint deadline) noexcept {
  const Device device = Process::get().runtime().device();
  for (const StreamHandle handle : streams_) {
    const Stream stream = device.borrow_stream(handle);
    Status status = stream.poll();
    while (status == Status::in_progress && Clock::now() < deadline) {
      std::this_thread::yield();
      status = stream.poll();
    }
    if (status == Status::in_progress) return false;
    if (failed_ == Status::ok) failed_ = status;
  }
  const Status failed = failed_;
  drop();
  failed_ = failed;
  return true;
}

void Producers::drop() noexcept {
  for (std::size_t at = 0; marks_ != nullptr && at < streams_.size(); ++at) detail::drop_mark(marks_[at]);
  marks_.reset();
  streams_.clear();
  busy_ = 0;
  failed_ = Status::ok;
}

void wait_for(Stream& stream) {
  Status status = stream.poll();
  if (status == Status::in_progress) {
    const nb::gil_scoped_release others_run;
    status = stream.synchronize();
  }
  if (status != Status::ok) refuse(status);
}

}  // namespace brant::python
