#include "ops/mover/stager.h"

namespace brant {

Status Stager::start(Direction direction, void* destination, const void* source, std::size_t bytes,
                     DeviceCopy& copy) noexcept {
  port::Streams* streams = engine_.device().streams();
  if (streams == nullptr) return Status::not_supported;
  CopyLane& lane = direction == Direction::out ? out_ : in_;
  const Result<port::Stream*> stream = lane.stream();
  if (!stream) return stream.status();
  Status status = streams->copy(destination, source, bytes, *stream);
  if (status != Status::ok) return status;
  DeviceCopies batch;
  batch.push_back(copy);
  status = lane.close(batch);
  if (status != Status::ok) {
    batch.remove(copy);
    return status;
  }
  engine_.pollers().attach(*this);
  return Status::ok;
}

unsigned Stager::poll() noexcept {
  const unsigned ended = out_.poll() + in_.poll();
  if (out_.empty() && in_.empty()) engine_.pollers().detach(*this);
  return ended;
}

}  // namespace brant
