#include "bench/coll/stream_calls.h"

#include <utility>

#include "brant/core/device.h"

namespace brant::bench {

StreamCalls::StreamCalls(Runtime& runtime, bool in_graph, Fault fault)
    : streams_(runtime.device().inner().streams()), in_graph_(in_graph), fault_(std::move(fault)) {
  stream_ = runtime.device().create_stream();
}

StreamCalls::~StreamCalls() { drop_graph(); }

void StreamCalls::run(const CollCall& call, std::size_t times, const QueueOne& one) {
  if (in_graph_) {
    if (captured_ != call || captured_times_ != times) capture(call, times, one);
    require(streams_->launch(graph_, stream_));
  } else {
    queue(times, one);
  }
  require(stream_.synchronize());
}

void StreamCalls::queue(std::size_t times, const QueueOne& one) {
  for (std::size_t i = 0; i < times; ++i) require(one(stream_));
}

void StreamCalls::capture(const CollCall& call, std::size_t times, const QueueOne& one) {
  drop_graph();
  require(streams_->begin_capture(stream_));
  queue(times, one);
  graph_ = streams_->end_capture(stream_).or_throw("no graph was captured");
  captured_ = call;
  captured_times_ = times;
}

void StreamCalls::drop_graph() noexcept {
  static_cast<void>(stream_.synchronize());
  if (graph_ != nullptr) streams_->destroy_graph(std::exchange(graph_, nullptr));
  captured_.reset();
}

void StreamCalls::require(Status status) const {
  if (status == Status::ok) return;
  const std::string fault = fault_();
  throw Error(status, fault.empty() ? "a collective of a stream failed: the log says why" : fault);
}

}  // namespace brant::bench
