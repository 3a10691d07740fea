#include "bench/runner/stream_contender.h"

#include <algorithm>

#include <fmt/format.h>

#include "bench/runner/check.h"

namespace brant::bench {
namespace {

constexpr std::size_t kReceivesBegun = 32;

Task<void> prepare(StreamChannel& channel) {
  const OpResult ready = co_await channel.prepare();
  if (!ready.ok()) {
    throw Error(ready.status,
                fmt::format("--trigger stream: the two ends cannot meet on streams: {}", status_text(ready.status)));
  }
}

}  // namespace

StreamContender::StreamContender(Session& session, const Options& options)
    : session_(session),
      options_(options),
      graphs_(session),
      stream_(graphs_.stream()),
      channel_(StreamChannel::open(session.runtime(), session.channel_partner(),
                                   ChannelId{static_cast<std::uint32_t>(session.pair())})),
      counts_(session.runtime()) {
  session.runtime().run(prepare(channel_));
}

void StreamContender::require(Status status, const char* what, std::size_t bytes) const {
  if (status == Status::ok) return;
  throw Error(status, fmt::format("rank {} could not {} ({} bytes of {} memory) on a stream: {}",
                                  session_.runtime().rank().value, what, bytes, memory_kind_name(options_.memory),
                                  status_text(status)));
}

void StreamContender::check(std::size_t bytes, std::size_t times) {
  const CheckedPosts posts{
      [&](ConstBuffer source, Op& op) noexcept { return channel_.send(source, {.stream = stream_, .op = &op}); },
      [&](Buffer landing, Op& op) noexcept { return channel_.recv(landing, {.stream = stream_, .op = &op}); }};
  Options limited = options_;
  limited.window = std::min(limited.window, kReceivesBegun);
  check_transfers(session_, limited, bytes, times, posts);
}

void StreamContender::send(std::size_t bytes) {
  require(channel_.send(session_.source(bytes), {.stream = stream_}), "send", bytes);
}

void StreamContender::recv(std::size_t bytes) {
  require(channel_.recv(session_.landing(bytes), {.stream = stream_}), "receive", bytes);
}

void StreamContender::run(std::span<double> samples, std::size_t together, const GraphSamples::Record& record) {
  const PathCounts::Sends before = counts_.now();
  graphs_.run(samples, together, record);
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
  for (std::size_t i = 0; i < window + kReceivesBegun; ++i) {
    if (i < window) {
      require(channel_.recv_start(session_.landing(bytes), {.stream = stream_}), "begin to receive", bytes);
    }
    if (i >= kReceivesBegun) require(channel_.recv_finish({.stream = stream_}), "receive", bytes);
  }
  send(kReplyBytes);
}

void StreamContender::windows(std::size_t bytes, std::size_t window, std::span<double> window_us) {
  run(window_us, kWindowsTogether, [&](std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) window_of(bytes, window);
  });
}

}  // namespace brant::bench
