#include "brant/core/stream.h"

#include "port/memory.h"

namespace brant {

Event::~Event() {
  if (event_ != nullptr) device_->streams()->destroy_event(event_);
}

Status Event::poll() const noexcept {
  return event_ == nullptr ? Status::invalid_argument : device_->streams()->poll(event_);
}

Result<double> Event::us_since(const Event& earlier) const noexcept {
  if (event_ == nullptr || earlier.event_ == nullptr) return Status::invalid_argument;
  return device_->streams()->elapsed_us(earlier.event_, event_);
}

Stream::~Stream() {
  if (stream_ != nullptr && owned_) device_->streams()->destroy_stream(stream_);
}

Status Stream::copy(Buffer destination, ConstBuffer source) noexcept {
  if (stream_ == nullptr || source.bytes > destination.bytes) return Status::invalid_argument;
  return device_->streams()->copy(destination.data, source.data, source.bytes, stream_);
}

Status Stream::fill(Buffer destination, std::byte value) noexcept {
  if (stream_ == nullptr) return Status::invalid_argument;
  return device_->streams()->fill(destination.data, value, destination.bytes, stream_);
}

Status Stream::record(Event& event) noexcept {
  if (stream_ == nullptr || event.event_ == nullptr) return Status::invalid_argument;
  return device_->streams()->record(event.event_, stream_);
}

Status Stream::wait_for(const Event& event) noexcept {
  if (stream_ == nullptr || event.event_ == nullptr) return Status::invalid_argument;
  return device_->streams()->wait_event(stream_, event.event_);
}

Status Stream::poll() const noexcept {
  return stream_ == nullptr ? Status::invalid_argument : device_->streams()->poll(stream_);
}

Status Stream::synchronize() noexcept {
  return stream_ == nullptr ? Status::invalid_argument : device_->streams()->synchronize(stream_);
}

}  // namespace brant
