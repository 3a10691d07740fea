#include "bench/coll/stream_calls.h"

#include <string>
#include <utility>

#include "brant/core/device.h"

namespace brant::bench {
namespace {

bool is_same(const Collective& a, const Collective& b) {
  return a.kind == b.kind && a.in.data == b.in.data && a.out.data == b.out.data && a.in.bytes == b.in.bytes &&
         a.out.bytes == b.out.bytes;
}

}  // namespace

StreamCalls::StreamCalls(Runtime& runtime, Team& team, bool in_graph)
    : streams_(runtime.device().inner().streams()), team_(team), in_graph_(in_graph) {
  require(team_.prepare_streams().status);
  stream_ = runtime.device().create_stream();
}

StreamCalls::~StreamCalls() {
  static_cast<void>(stream_.synchronize());
  drop_graph();
}

void StreamCalls::run(const Collective& call, std::size_t times) {
  if (in_graph_) {
    if (!captured_ || captured_times_ != times || !is_same(*captured_, call)) capture(call, times);
    require(streams_->launch(graph_, stream_));
  } else {
    queue(call, times);
  }
  require(stream_.synchronize());
  if (const std::string fault = team_.fault(); !fault.empty()) throw Error(Status::internal, fault);
}

void StreamCalls::queue(const Collective& call, std::size_t times) {
  for (std::size_t i = 0; i < times; ++i) require(team_.enqueue(call, stream_));
}

void StreamCalls::capture(const Collective& call, std::size_t times) {
  drop_graph();
  require(streams_->begin_capture(stream_));
  queue(call, times);
  graph_ = streams_->end_capture(stream_).or_throw("no graph was captured");
  captured_ = call;
  captured_times_ = times;
}

void StreamCalls::drop_graph() noexcept {
  if (graph_ != nullptr) streams_->destroy_graph(std::exchange(graph_, nullptr));
  captured_.reset();
}

void StreamCalls::require(Status status) const {
  if (status == Status::ok) return;
  const std::string fault = team_.fault();
  throw Error(status, fault.empty() ? "a collective of a stream failed: the log says why" : fault);
}

}  // namespace brant::bench
