#include "cli/bench/message_contender.h"

#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "cli/bench/pattern.h"

namespace brant::cli::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kIdleBeforeYield = 2000;
constexpr std::size_t kReplyBytes = 4;

MessageContender* g_contender = nullptr;  // a chare is made by its runtime, which knows nothing of benchmarks

Task<void> make_pingers(Chares& chares) {
  create_group<Pinger>(chares);
  co_await chares.until_exit();
}

}  // namespace

Pinger::Pinger() noexcept { g_contender->born(*this); }
void Pinger::bounce(std::span<const std::byte> payload) { g_contender->on_bounce(payload); }
void Pinger::take(std::span<const std::byte> payload) { g_contender->on_take(payload); }

MessageContender::MessageContender(Session& session, const Options& options)
    : session_(session), counts_(session.runtime()), chares_(session.runtime()) {
  if (options.memory != MemoryKind::host) {
    throw Error(Status::not_supported,
                fmt::format("--model message measures arguments in host memory, not {}: use --model channel",
                            memory_kind_name(options.memory)));
  }
  g_contender = this;
  chares_.start(make_pingers(chares_));
  while (pinger_ == nullptr && !chares_.ended()) chares_.progress();
  if (chares_.ended()) throw Error(Status::internal, chares_.failure());
  partner_ = pinger_->this_array()[session.channel().peer().value];
}

MessageContender::~MessageContender() {
  if (chares_.rank().value == 0) chares_.exit();
  while (!chares_.ended()) chares_.progress();
  g_contender = nullptr;
}

void MessageContender::run_until_none_left() {
  unsigned idle = 0;
  while (left_ != 0 && !chares_.ended()) {
    if (chares_.progress() != 0) {
      idle = 0;
    } else if (++idle >= kIdleBeforeYield) {
      std::this_thread::yield();
    }
  }
  if (chares_.ended()) throw Error(Status::internal, chares_.failure());
}

void MessageContender::look_at(std::span<const std::byte> payload) {
  if (!checks_) return;
  const std::optional<std::size_t> wrong = first_wrong_byte(payload, number_++);
  if (!wrong) return;
  throw Error(Status::internal, fmt::format("check: message {} of {} bytes is wrong at rank {}: byte {}", number_ - 1,
                                            payload.size(), chares_.rank().value, *wrong));
}

void MessageContender::send_bounce() {
  std::span<const std::byte> payload = window_ != 0 ? source_.first(kReplyBytes) : source_;
  if (checks_) {
    fill_pattern(image_, number_++);
    payload = image_;
  }
  partner_.call<&Pinger::bounce>(payload);
}

void MessageContender::on_bounce(std::span<const std::byte> payload) {
  look_at(payload);
  answered_ = true;
  if (session_.leads()) return;
  send_bounce();
  --left_;
}

void MessageContender::on_take(std::span<const std::byte>) {
  if (++taken_ < window_) return;
  taken_ = 0;
  send_bounce();
  --left_;
}

/// One batch of either kind: the leader begins every exchange with `begin` and waits for its answer, the other side
/// answers from its entry methods.
template <typename Begin>
void MessageContender::run_batch(std::size_t bytes, std::span<double> samples, Begin&& begin) {
  const PathCounts::Sends before = counts_.now();
  const Buffer source = session_.source(bytes);
  source_ = {static_cast<const std::byte*>(source.data), source.bytes};
  left_ = samples.size();
  if (session_.leads()) {
    Clock::time_point last = Clock::now();
    for (double& sample : samples) {
      answered_ = false;
      begin();
      while (!answered_ && !chares_.ended()) chares_.progress();
      if (chares_.ended()) throw Error(Status::internal, chares_.failure());
      const Clock::time_point now = Clock::now();
      sample = std::chrono::duration<double, std::micro>(now - std::exchange(last, now)).count();
    }
    left_ = 0;
  } else {
    run_until_none_left();
  }
  path_ = counts_.since(before);
}

void MessageContender::ping_pong(std::size_t bytes, std::span<double> round_trip_us) {
  window_ = 0;
  run_batch(bytes, round_trip_us, [&] { send_bounce(); });
}

void MessageContender::windows(std::size_t bytes, std::size_t window, std::span<double> window_us) {
  window_ = window;
  run_batch(std::max(bytes, kReplyBytes), window_us, [&] {
    for (std::size_t i = 0; i < window; ++i) partner_.call<&Pinger::take>(source_.first(bytes));
  });
}

void MessageContender::check(std::size_t bytes, std::size_t times) {
  checks_ = true;
  number_ = 0;
  image_.assign(bytes, std::byte{});
  std::vector<double> ignored(times);
  ping_pong(bytes, ignored);
  checks_ = false;
}

}  // namespace brant::cli::bench
