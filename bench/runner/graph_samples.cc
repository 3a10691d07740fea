#include "bench/runner/graph_samples.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "brant/core/device.h"

namespace brant::bench {
namespace {

using Clock = std::chrono::steady_clock;

port::Streams& streams_of(Runtime& runtime) {
  port::Streams* streams = runtime.device().inner().streams();
  if (streams == nullptr) {
    throw Error(Status::not_supported, "--trigger stream needs memory of a device: --memory cuda or emulated");
  }
  return *streams;
}

}  // namespace

GraphSamples::GraphSamples(Session& session) : session_(session), streams_(streams_of(session.runtime())) {
  const Result<port::Stream*> stream = streams_.create_stream(port::StreamPriority::normal);
  if (!stream) throw Error(stream.status(), "no stream for the benchmark");
  stream_ = *stream;
}

GraphSamples::~GraphSamples() { streams_.destroy_stream(stream_); }

void GraphSamples::require(Status status, const char* what) const {
  if (status == Status::ok) return;
  throw Error(status, fmt::format("rank {} could not {} on a stream: {}", session_.runtime().rank().value, what,
                                  status_text(status)));
}

double GraphSamples::run_graph(std::size_t times, const Record& record) {
  require(streams_.begin_capture(stream_), "capture");
  record(times);
  const Result<port::Graph*> graph = streams_.end_capture(stream_);
  require(graph.status(), "make a graph");
  session_.barrier();
  const Clock::time_point begin = Clock::now();
  require(streams_.launch(*graph, stream_), "launch a graph");
  Status status = streams_.poll(stream_);
  for (; status == Status::in_progress; status = streams_.poll(stream_)) {
    session_.runtime().worker().progress();  // by which the other end learns where landings are
    std::this_thread::yield();               // kernels of an emulated device need the CPU
  }
  const Clock::time_point end = Clock::now();
  streams_.destroy_graph(*graph);
  require(status, "run a graph");
  return std::chrono::duration<double, std::micro>(end - begin).count() / static_cast<double>(times);
}

void GraphSamples::run(std::span<double> samples, std::size_t together, const Record& record) {
  while (!samples.empty()) {
    const std::size_t times = std::min(together, samples.size());
    std::ranges::fill(samples.first(times), run_graph(times, record));
    samples = samples.subspan(times);
  }
}

}  // namespace brant::bench
