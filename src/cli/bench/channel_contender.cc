#include "cli/bench/channel_contender.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "core/engine.h"

namespace brant::cli::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kReplyBytes = 4;

/// One look at the clock per sample: the end of one is the beginning of the next.
class Stopwatch {
 public:
  double lap_us() noexcept {
    const Clock::time_point now = Clock::now();
    return std::chrono::duration<double, std::micro>(now - std::exchange(last_, now)).count();
  }

 private:
  Clock::time_point last_ = Clock::now();
};

}  // namespace

ChannelContender::ChannelContender(Session& session, const Options& options)
    : session_(session),
      coroutines_(options.coroutines),
      spin_(options.spin),
      ops_(std::make_unique<Op[]>(options.window)) {}

template <typename Predicate>
void ChannelContender::wait(Predicate&& done) noexcept {
  Worker& worker = session_.runtime().worker();
  if (!spin_) {
    static_cast<void>(worker.wait_until(done));
    return;
  }
  while (!done()) static_cast<void>(worker.progress());
}

void ChannelContender::fail(const OpResult& result, bool sends, std::size_t bytes) const {
  throw Error(result.status,
              fmt::format("brant bench: rank {} could not {} a message of {} bytes of {} memory {} rank {}: {}",
                          session_.runtime().rank().value, sends ? "send" : "receive", bytes,
                          memory_kind_name(session_.source(0).kind), sends ? "to" : "from",
                          session_.channel().peer().value, status_text(result.status)));
}

void ChannelContender::ping_pong(std::size_t bytes, std::span<double> round_trip_us) {
  const SendCounts before = session_.runtime().worker().engine().counters().sends;
  if (coroutines_) {
    session_.runtime().run(await_ping_pong(bytes, round_trip_us));
  } else {
    post_ping_pong(bytes, round_trip_us);
  }
  note_path(before);
}

void ChannelContender::post_ping_pong(std::size_t bytes, std::span<double> round_trip_us) {
  Channel& channel = session_.channel();
  const Buffer source = session_.source(bytes);
  const Buffer landing = session_.landing(bytes);
  Op outgoing, incoming;
  Flag sent, received;
  const auto send = [&]() noexcept {
    sent.done = false;
    outgoing.source_free = sent.sink();
    const Status posted = channel.post_send(source, outgoing);
    if (posted != Status::in_progress) sent = {true, {posted, outgoing.result.bytes}};
  };
  const auto receive = [&]() noexcept {
    received.done = false;
    incoming.delivered = received.sink();
    const Status posted = channel.post_recv(landing, incoming);
    if (posted != Status::in_progress) received = {true, {posted, incoming.result.bytes}};
  };
  Stopwatch watch;
  for (double& sample : round_trip_us) {
    if (session_.leads()) {
      send();
      receive();
      wait([&]() noexcept { return received.done && sent.done; });
    } else {
      receive();
      wait([&]() noexcept { return received.done; });
      send();
      wait([&]() noexcept { return sent.done; });
    }
    if (!sent.result.ok()) fail(sent.result, true, bytes);
    if (!received.result.ok() || received.result.bytes != bytes) fail(received.result, false, bytes);
    sample = watch.lap_us();
  }
}

Task<void> ChannelContender::await_ping_pong(std::size_t bytes, std::span<double> round_trip_us) {
  Channel& channel = session_.channel();
  const Buffer source = session_.source(bytes);
  const Buffer landing = session_.landing(bytes);
  Stopwatch watch;
  for (double& sample : round_trip_us) {
    OpResult sent, received;
    if (session_.leads()) {
      Operation outgoing = channel.send(source);
      Operation incoming = channel.recv(landing);
      received = co_await incoming;
      sent = co_await outgoing;
    } else {
      received = co_await channel.recv(landing);
      sent = co_await channel.send(source);
    }
    if (!sent.ok()) fail(sent, true, bytes);
    if (!received.ok()) fail(received, false, bytes);
    sample = watch.lap_us();
  }
}

void ChannelContender::transfer_window(bool sends, Buffer memory, std::size_t window) {
  Channel& channel = session_.channel();
  Counter counter;
  for (std::size_t i = 0; i < window; ++i) {
    Op& op = ops_[i];
    op.source_free = sends ? counter.sink() : Completion{};  // a post that completed at once has left its sink in place
    op.delivered = sends ? Completion{} : counter.sink();
    counter.track(sends ? channel.post_send(memory, op) : channel.post_recv(memory, op), op);
  }
  wait([&]() noexcept { return counter.pending() == 0; });
  if (!counter.result().ok()) fail(counter.result(), sends, memory.bytes);
}

void ChannelContender::windows(std::size_t bytes, std::size_t window, std::span<double> window_us) {
  const SendCounts before = session_.runtime().worker().engine().counters().sends;
  const bool sends = session_.leads();
  const Buffer memory = sends ? session_.source(bytes) : session_.landing(bytes);
  const Buffer reply = sends ? session_.landing(kReplyBytes) : session_.source(kReplyBytes);
  Stopwatch watch;
  for (double& sample : window_us) {
    transfer_window(sends, memory, window);
    transfer_window(!sends, reply, 1);
    sample = watch.lap_us();
  }
  note_path(before);
}

void ChannelContender::note_path(const SendCounts& before) {
  const SendCounts& after = session_.runtime().worker().engine().counters().sends;
  std::size_t most = 0;
  for (std::size_t path = 1; path < after.size(); ++path) {
    if (after[path] - before[path] > after[most] - before[most]) most = path;
  }
  path_ = path_name(static_cast<Path>(most));
}

}  // namespace brant::cli::bench
