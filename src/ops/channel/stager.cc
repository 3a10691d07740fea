#include "ops/channel/stager.h"

namespace brant {

Stager::~Stager() {
  port::Streams* streams = engine_.device().streams();
  engine_.detach(static_cast<Poller&>(*this));
  for (Lane& lane : lanes_) {
    if (lane.stream != nullptr) streams->destroy_stream(lane.stream);
    while (StageCopy* copy = lane.copies.pop_front()) events_.push_back(copy->event);
  }
  for (port::Event* event : events_) streams->destroy_event(event);
}

Result<port::Event*> Stager::take_event() noexcept {
  if (events_.empty()) return engine_.device().streams()->create_event(false);
  port::Event* event = events_.back();
  events_.pop_back();
  return event;
}

Status Stager::start(Direction direction, void* destination, const void* source, std::size_t bytes,
                     StageCopy& copy) noexcept {
  port::Streams* streams = engine_.device().streams();
  if (streams == nullptr) return Status::not_supported;
  Lane& lane = lanes_[direction == Direction::out ? 0 : 1];
  if (lane.stream == nullptr) {
    const Result<port::Stream*> stream = streams->create_stream();
    if (!stream) return stream.status();
    lane.stream = *stream;
  }
  const Result<port::Event*> event = take_event();
  if (!event) return event.status();
  copy.event = *event;
  Status status = streams->copy(destination, source, bytes, lane.stream);
  if (status == Status::ok) status = streams->record(copy.event, lane.stream);
  if (status != Status::ok) {
    events_.push_back(copy.event);
    return status;
  }
  lane.copies.push_back(copy);
  ++under_way_;
  engine_.attach(static_cast<Poller&>(*this));
  return Status::ok;
}

unsigned Stager::poll_lane(Lane& lane) noexcept {
  unsigned ended = 0;
  // One stream keeps order, so only the oldest copy needs a look.
  while (StageCopy* copy = lane.copies.front()) {
    const Status status = engine_.device().streams()->poll(copy->event);
    if (status == Status::in_progress) break;
    lane.copies.remove(*copy);
    events_.push_back(copy->event);
    --under_way_;
    ++ended;
    copy->done(*copy, status);
  }
  return ended;
}

unsigned Stager::poll() noexcept {
  const unsigned ended = poll_lane(lanes_[0]) + poll_lane(lanes_[1]);
  if (under_way_ == 0) engine_.detach(static_cast<Poller&>(*this));
  return ended;
}

}  // namespace brant
