#include "cli/bench/stream_contender.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "cli/bench/check.h"
#include "port/memory.h"

namespace brant::cli::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kReplyBytes = 4;
constexpr std::size_t kRoundTripsTogether = 100;  // so that launching the graph does not count
constexpr std::size_t kWindowsTogether = 4;
constexpr std::size_t kReceivesBegun = 32;

port::Streams& streams_of(Runtime& runtime) {
  port::Streams* streams = runtime.device().streams();
  if (streams == nullptr) {
    throw Error(Status::not_supported, "--trigger stream needs memory of a device: --memory cuda or emulated");
  }
  return *streams;
}

Task<void> prepare(Channel& channel) {
  const OpResult ready = co_await channel.prepare_streams();
  if (!ready.ok()) {
    throw Error(ready.status,
                fmt::format("--trigger stream: the two ends cannot meet on streams: {}", status_text(ready.status)));
  }
}

}  // namespace

StreamContender::StreamContender(Session& session, const Options& options)
    : session_(session), options_(options), streams_(streams_of(session.runtime())), counts_(session.runtime()) {
  session.runtime().run(prepare(session.channel()));
  const Result<port::Stream*> stream = streams_.create_stream(port::StreamPriority::normal);
  if (!stream) throw Error(stream.status(), "no stream for the benchmark");
  stream_ = *stream;
}

StreamContender::~StreamContender() { streams_.destroy_stream(stream_); }

void StreamContender::require(Status status, const char* what, std::size_t bytes) const {
  if (status == Status::ok) return;
  throw Error(status, fmt::format("rank {} could not {} ({} bytes of {} memory) on a stream: {}",
                                  session_.runtime().rank().value, what, bytes, memory_kind_name(options_.memory),
                                  status_text(status)));
}

void StreamContender::check(std::size_t bytes, std::size_t times) {
  Channel& channel = session_.channel();
  const CheckedPosts posts{
      [&](ConstBuffer source, Op& op) noexcept { return channel.send(source, {.stream = stream_, .op = &op}); },
      [&](Buffer landing, Op& op) noexcept { return channel.recv(landing, {.stream = stream_, .op = &op}); }};
  Options limited = options_;
  limited.window = std::min(limited.window, kReceivesBegun);
  check_transfers(session_, limited, bytes, times, posts);
}

void StreamContender::send(std::size_t bytes) {
  require(session_.channel().send(session_.source(bytes), {.stream = stream_}), "send", bytes);
}

void StreamContender::recv(std::size_t bytes) {
  require(session_.channel().recv(session_.landing(bytes), {.stream = stream_}), "receive", bytes);
}

double StreamContender::run_graph(std::size_t times, const Record& record) {
  require(streams_.begin_capture(stream_), "capture", 0);
  record(times);
  const Result<port::Graph*> graph = streams_.end_capture(stream_);
  require(graph.status(), "make a graph", 0);
  session_.barrier();
  const Clock::time_point begin = Clock::now();
  require(streams_.launch(*graph, stream_), "launch a graph", 0);
  Status status = streams_.poll(stream_);
  for (; status == Status::in_progress; status = streams_.poll(stream_)) {
    session_.runtime().worker().progress();  // by which the other end learns where landings are
    std::this_thread::yield();               // kernels of an emulated device need the CPU
  }
  const Clock::time_point end = Clock::now();
  streams_.destroy_graph(*graph);
  require(status, "run a graph", 0);
  return std::chrono::duration<double, std::micro>(end - begin).count() / static_cast<double>(times);
}

void StreamContender::run(std::span<double> samples, std::size_t together, const Record& record) {
  const PathCounts::Sends before = counts_.now();
  while (!samples.empty()) {
    const std::size_t times = std::min(together, samples.size());
    std::ranges::fill(samples.first(times), run_graph(times, record));
    samples = samples.subspan(times);
  }
  path_ = counts_.since(before);
}

void StreamContender::ping_pong(std::size_t bytes, std::span<double> round_trip_us) {
  run(round_trip_us, kRoundTripsTogether, [&](std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) {
      if (session_.leads()) {
        send(bytes);
        recv(bytes);
      } else {
        recv(bytes);
        send(bytes);
      }
    }
  });
}

void StreamContender::window_of(std::size_t bytes, std::size_t window) {
  if (session_.leads()) {
    for (std::size_t i = 0; i < window; ++i) send(bytes);
    recv(kReplyBytes);
    return;
  }
  // Receives begin ahead of those that end, so that the sender need not wait for each.
  Channel& channel = session_.channel();
  for (std::size_t i = 0; i < window + kReceivesBegun; ++i) {
    if (i < window) {
      require(channel.recv_start(session_.landing(bytes), {.stream = stream_}), "begin to receive", bytes);
    }
    if (i >= kReceivesBegun) require(channel.recv_finish({.stream = stream_}), "receive", bytes);
  }
  send(kReplyBytes);
}

void StreamContender::windows(std::size_t bytes, std::size_t window, std::span<double> window_us) {
  run(window_us, kWindowsTogether, [&](std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) window_of(bytes, window);
  });
}

}  // namespace brant::cli::bench
