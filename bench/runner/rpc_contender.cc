#include "bench/runner/rpc_contender.h"

#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "bench/runner/pattern.h"
#include "bench/runner/us_since.h"

namespace brant::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kAllRight = ~std::uint64_t{0};

Images* g_images = nullptr;  // functions are called by their runtime, which knows nothing of benchmarks

// What is called. Each answers how many bytes it was given.
std::uint64_t take(std::span<const std::byte> payload) { return payload.size(); }
std::uint64_t take_data(DeviceData data) { return data.bytes(); }

// What is called in a pass that checks: the first byte that is not the pattern's, or kAllRight.
std::uint64_t look_at_data(std::uint64_t number, DeviceData data) {
  const std::optional<std::size_t> wrong = g_images->first_wrong(data, number);
  return wrong ? *wrong : kAllRight;
}
std::uint64_t look_at(std::uint64_t number, std::span<const std::byte> payload) {
  const std::optional<std::size_t> wrong = first_wrong_byte(payload, number);
  return wrong ? *wrong : kAllRight;
}

std::span<const std::byte> bytes_of(Buffer payload) {
  return {static_cast<const std::byte*>(payload.data), payload.bytes};
}

}  // namespace

RpcContender::RpcContender(Session& session, const Options& options)
    : session_(session),
      options_(options),
      counts_(session.runtime()),
      images_(session.runtime()),
      rpc_(session.runtime()) {
  session.stay_awake();  // the partner runs what is called
  answers_.reserve(options.window);
  g_images = &images_;
}

RpcContender::~RpcContender() { g_images = nullptr; }

Result<RpcContender::Answer> RpcContender::try_call(Buffer payload) const {
  const Rank to = session_.channel_partner();
  return by_message() ? rpc_.try_call<&take>(to, bytes_of(payload)) : rpc_.try_call<&take_data>(to, device(payload));
}

RpcContender::Answer RpcContender::call(Buffer payload) {
  for (;;) {
    Result<Answer> answer = try_call(payload);
    if (answer) return std::move(*answer);
    if (answer.status() != Status::limit_reached)
      throw Error(answer.status(),
                  fmt::format("rank {} could not call a function of rank {} with {} bytes of {} memory: {}",
                              session_.runtime().rank().value, session_.channel_partner().value, payload.bytes,
                              memory_kind_name(payload.kind), status_text(answer.status())));
    if (answered_ < answers_.size()) {
      expect_taken(answer_of(answers_[answered_]), payload.bytes);
      ++answered_;
    } else {
      static_cast<void>(session_.runtime().worker().progress());
    }
  }
}

std::uint64_t RpcContender::answer_of(Answer& answer) {
  while (options_.spin && !answer.ready()) static_cast<void>(session_.runtime().worker().progress());
  return session_.runtime().wait(answer);
}

void RpcContender::expect_taken(std::uint64_t taken, std::size_t bytes) const {
  if (taken == bytes) return;
  throw Error(Status::internal, fmt::format("a function of rank {} was called with {} bytes, and says that it had {}",
                                            session_.channel_partner().value, bytes, taken));
}

void RpcContender::call_window(Buffer payload, std::size_t window) {
  answers_.clear();
  answered_ = 0;
  for (std::size_t i = 0; i < window; ++i) answers_.push_back(call(payload));
  for (; answered_ < window; ++answered_) expect_taken(answer_of(answers_[answered_]), payload.bytes);
}

Task<void> RpcContender::await_each(Buffer payload, std::span<double> us) {
  for (double& sample : us) {
    const Clock::time_point begin = Clock::now();
    expect_taken(co_await call(payload), payload.bytes);
    sample = us_since(begin);
  }
}

/// The partner waits in the barrier that follows.
void RpcContender::windows(std::size_t bytes, std::size_t window, std::span<double> window_us) {
  if (!session_.leads()) return;
  const PathCounts::Sends before = counts_.now();
  const Buffer payload = session_.source(bytes);
  if (options_.coroutines) {
    session_.runtime().run(await_each(payload, window_us));
  } else {
    for (double& sample : window_us) {
      const Clock::time_point begin = Clock::now();
      call_window(payload, window);
      sample = us_since(begin);
    }
  }
  note_path(before, bytes);
}

/// A call with data counts twice, as a message and as data: the data is what is measured.
void RpcContender::note_path(const PathCounts::Sends& before, std::size_t bytes) {
  path_ = counts_.since(before);
  if (by_message()) return;
  const Result<Path> path = session_.channel().path_of(options_.memory, bytes);
  if (path) path_ = path_name(*path);
}

void RpcContender::check(std::size_t bytes, std::size_t times) {
  if (!session_.leads()) return;
  const Rank to = session_.channel_partner();
  const Buffer payload = session_.source(bytes);
  for (std::uint64_t number = 0; number < times; ++number) {
    images_.fill(payload, number);
    Answer answer = by_message() ? rpc_.call<&look_at>(to, number, bytes_of(payload))
                                 : rpc_.call<&look_at_data>(to, number, device(payload));
    const std::uint64_t wrong = answer_of(answer);
    if (wrong == kAllRight) continue;
    throw Error(Status::internal, fmt::format("check: call {} with {} bytes of {} memory is wrong at rank {}: byte {}",
                                              number, bytes, memory_kind_name(options_.memory), to.value, wrong));
  }
}

}  // namespace brant::bench
