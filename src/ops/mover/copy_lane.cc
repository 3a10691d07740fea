#include "ops/mover/copy_lane.h"

#include <utility>

namespace brant {

CopyLane::~CopyLane() {
  if (stream_ != nullptr) device_.streams()->destroy_stream(stream_);
  while (DeviceCopy* copy = copies_.pop_front()) {
    if (copy->event != nullptr) events_.give_back(copy->event);
  }
}

Result<port::Stream*> CopyLane::stream() noexcept {
  if (stream_ == nullptr) {
    const Result<port::Stream*> made = device_.streams()->create_stream(port::StreamPriority::high);
    if (!made) return made.status();
    stream_ = *made;
  }
  return stream_;
}

Status CopyLane::close(DeviceCopies& batch) noexcept {
  const Result<port::Event*> event = events_.take();
  const Status status = event.ok() ? device_.streams()->record(*event, stream_) : event.status();
  if (status != Status::ok) {
    if (event.ok()) events_.give_back(*event);
    static_cast<void>(device_.streams()->synchronize(stream_));
    return status;
  }
  while (DeviceCopy* copy = batch.pop_front()) {
    copy->event = batch.empty() ? *event : nullptr;
    copies_.push_back(*copy);
  }
  return Status::ok;
}

unsigned CopyLane::poll() noexcept {
  unsigned ended = 0;
  // One stream keeps order, so only the end of the oldest batch needs a look.
  while (DeviceCopy* last = copies_.front()) {
    while (last->event == nullptr) last = DeviceCopies::next(*last);  // every batch ends with one
    const Status status = device_.streams()->poll(last->event);
    if (status == Status::in_progress) break;
    for (bool more = true; more; ++ended) {
      DeviceCopy* copy = copies_.pop_front();
      more = copy->event == nullptr;
      if (!more) events_.give_back(std::exchange(copy->event, nullptr));
      done_(*copy, status);
    }
  }
  return ended;
}

}  // namespace brant
