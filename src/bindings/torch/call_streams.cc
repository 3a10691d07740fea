#include "bindings/torch/call_streams.h"

namespace brant::distributed {

c10::Stream CallStreams::current() {
  const c10::Stream stream = gpu_.current();
  put_behind_last(stream);
  return stream;
}

c10::Stream CallStreams::own() {
  if (!own_) own_ = gpu_.another();
  put_in_order(gpu_.current(), *own_);
  put_behind_last(*own_);
  return *own_;
}

std::shared_ptr<c10::Event> CallStreams::note_call(const c10::Stream& stream) {
  auto end = std::make_shared<c10::Event>(stream.device_type());
  end->record(stream);
  if (!is_captured(stream)) last_.emplace(Queued{stream, end});
  return end;
}

/// In a graph nothing may wait for what is outside of it: there the program waits for one call before the next.
void CallStreams::put_behind_last(const c10::Stream& stream) const {
  if (last_ && last_->stream != stream && !is_captured(stream)) last_->end->block(stream);
}

}  // namespace brant::distributed
