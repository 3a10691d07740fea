#include "bench/runner/channel_contender.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "bench/runner/check.h"

namespace brant::bench {
namespace {

using Clock = std::chrono::steady_clock;

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

/// One message and its record, used again and again.
class Transfer {
 public:
  Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() { op_.detach(); }

  void post_send(Channel& channel, ConstBuffer source) noexcept {
    flag_.done = false;
    op_.source_free = flag_.sink();
    note(channel.post_send(source, op_));
  }
  void post_recv(Channel& channel, Buffer landing) noexcept {
    flag_.done = false;
    op_.delivered = flag_.sink();
    note(channel.post_recv(landing, op_));
  }
  [[nodiscard]] bool done() const noexcept { return flag_.done; }
  [[nodiscard]] const OpResult& result() const noexcept { return flag_.result; }

 private:
  void note(Status posted) noexcept {
    if (posted != Status::in_progress) flag_ = {true, {posted, op_.result.bytes}};
  }

  Op op_;
  Flag flag_;
};

}  // namespace

ChannelContender::ChannelContender(Session& session, const Options& options)
    : session_(session),
      options_(options),
      counts_(session.runtime()),
      coroutines_(options.coroutines),
      spin_(options.spin),
      window_(options.window) {}

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
  throw Error(result.status, fmt::format("rank {} could not {} a message of {} bytes of {} memory {} rank {}: {}",
                                         session_.runtime().rank().value, sends ? "send" : "receive", bytes,
                                         memory_kind_name(session_.source(0).kind), sends ? "to" : "from",
                                         session_.channel().peer().value, status_text(result.status)));
}

void ChannelContender::check(std::size_t bytes, std::size_t times) {
  Channel& channel = session_.channel();
  const CheckedPosts posts{[&](ConstBuffer source, Op& op) noexcept { return channel.post_send(source, op); },
                           [&](Buffer landing, Op& op) noexcept { return channel.post_recv(landing, op); }};
  check_transfers(session_, options_, bytes, times, posts);
}

void ChannelContender::ping_pong(std::size_t bytes, std::span<double> round_trip_us) {
  const PathCounts::Sends before = counts_.now();
  if (coroutines_) {
    session_.runtime().run(await_ping_pong(bytes, round_trip_us));
  } else {
    post_ping_pong(bytes, round_trip_us);
  }
  path_ = counts_.since(before);
}

void ChannelContender::post_ping_pong(std::size_t bytes, std::span<double> round_trip_us) {
  Transfer outgoing, incoming;
  const auto send = [&]() noexcept { outgoing.post_send(session_.channel(), session_.source(bytes)); };
  const auto receive = [&]() noexcept { incoming.post_recv(session_.channel(), session_.landing(bytes)); };
  Stopwatch watch;
  for (double& sample : round_trip_us) {
    if (session_.leads()) {
      send();
      receive();
      // After a failed send no answer comes.
      wait([&]() noexcept { return outgoing.done() && (incoming.done() || !outgoing.result().ok()); });
    } else {
      receive();
      wait([&]() noexcept { return incoming.done(); });
      send();
      wait([&]() noexcept { return outgoing.done(); });
    }
    if (!outgoing.result().ok()) fail(outgoing.result(), true, bytes);
    if (!incoming.result().ok() || incoming.result().bytes != bytes) fail(incoming.result(), false, bytes);
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
      if (outgoing.done() && !outgoing.result().ok()) fail(outgoing.result(), true, bytes);  // no answer would come
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
  for (std::size_t i = 0; i < window && window_.result().ok(); ++i) {
    window_.add(sends ? Moment::source_free : Moment::delivered,
                [&](Op& op) noexcept { return sends ? channel.post_send(memory, op) : channel.post_recv(memory, op); });
  }
  wait([&]() noexcept { return window_.pending() == 0 || !window_.result().ok(); });
  if (window_.result().ok()) return;
  const OpResult fault = window_.result();
  window_.withdraw();
  fail(fault, sends, memory.bytes);
}

void ChannelContender::windows(std::size_t bytes, std::size_t window, std::span<double> window_us) {
  const PathCounts::Sends before = counts_.now();
  const bool sends = session_.leads();
  const Buffer memory = sends ? session_.source(bytes) : session_.landing(bytes);
  const Buffer reply = sends ? session_.landing(kReplyBytes) : session_.source(kReplyBytes);
  Stopwatch watch;
  for (double& sample : window_us) {
    transfer_window(sends, memory, window);
    transfer_window(!sends, reply, 1);
    sample = watch.lap_us();
  }
  path_ = counts_.since(before);
}

}  // namespace brant::bench
