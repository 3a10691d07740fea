#include "bench/runner/message_contender.h"

#include <array>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "bench/runner/pattern.h"

namespace brant::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kIdleBeforeYield = 2000;

MessageContender* g_contender = nullptr;  // a chare is made by its runtime, which knows nothing of benchmarks

Task<void> make_pingers(Chares& chares) {
  create_group<Pinger>(chares);
  co_await chares.until_exit();
}

}  // namespace

Pinger::Pinger() noexcept { g_contender->born(*this); }
void Pinger::bounce(std::span<const std::byte> payload) { g_contender->on_bounce(payload); }
void Pinger::take(std::span<const std::byte>) { g_contender->on_take(); }
void Pinger::bounce_data(DeviceData data) { g_contender->on_bounce_data(data); }
void Pinger::take_data(DeviceData) { g_contender->on_take(); }
Buffer Pinger::post(Post<&Pinger::bounce_data>, const DeviceMeta& meta) { return g_contender->landing(meta.bytes); }
Buffer Pinger::post(Post<&Pinger::take_data>, const DeviceMeta& meta) { return g_contender->landing(meta.bytes); }

/// Runs messages until `done` holds; a program that ends before is an error.
template <typename Done>
void MessageContender::run_until(Done&& done) {
  for (unsigned idle = 0; !done() && !chares_.ended();) {
    if (chares_.progress() != 0) {
      idle = 0;
    } else if (++idle >= kIdleBeforeYield) {
      std::this_thread::yield();
    }
  }
  if (!done()) throw Error(Status::internal, chares_.failure());
}

MessageContender::MessageContender(Session& session, const Options& options)
    : session_(session), memory_(options.memory), counts_(session.runtime()), chares_(session.runtime()) {
  g_contender = this;
  chares_.start(make_pingers(chares_));
  run_until([this] { return pinger_ != nullptr; });
  partner_ = pinger_->this_array()[session.channel().peer().value];
}

MessageContender::~MessageContender() {
  if (chares_.rank().value == 0) chares_.exit();
  while (!chares_.ended()) chares_.progress();
  g_contender = nullptr;
}

void MessageContender::look_at(std::span<const std::byte> payload) {
  if (!checks_) return;
  const std::optional<std::size_t> wrong = first_wrong_byte(payload, number_++);
  if (!wrong) return;
  throw Error(Status::internal, fmt::format("check: message {} of {} bytes is wrong at rank {}: byte {}", number_ - 1,
                                            payload.size(), chares_.rank().value, *wrong));
}

void MessageContender::send_bounce() {
  if (checks_) {
    fill_pattern(image_, number_++);
    session_.runtime().copy(source_, ConstBuffer(image_.data(), image_.size(), MemoryKind::host));
  }
  if (memory_ != MemoryKind::host) {
    partner_.call<&Pinger::bounce_data>(device(source_));
  } else {
    partner_.call<&Pinger::bounce>(std::span(static_cast<const std::byte*>(source_.data), source_.bytes));
  }
}

/// The end of an exchange: the leader has its answer, the other side gives it.
void MessageContender::answer() {
  answered_ = true;
  if (session_.leads()) return;
  --left_;
  if (window_ == 0) return send_bounce();
  static constexpr std::array<std::byte, kReplyBytes> kReply{};
  partner_.call<&Pinger::bounce>(std::span(kReply));
}

void MessageContender::on_bounce(std::span<const std::byte> payload) {
  if (window_ == 0) look_at(payload);
  answer();
}

void MessageContender::on_bounce_data(Buffer landed) {
  if (checks_) {
    std::vector<std::byte> image(landed.bytes);
    session_.runtime().copy(Buffer(image.data(), image.size(), MemoryKind::host), landed);
    look_at(image);
  }
  answer();
}

void MessageContender::on_take() {
  if (++taken_ < window_) return;
  taken_ = 0;
  answer();
}

/// One batch of either kind: the leader begins every exchange with `begin` and waits for its answer, the other side
/// answers from its entry methods.
template <typename Begin>
void MessageContender::run_batch(std::size_t bytes, std::span<double> samples, Begin&& begin) {
  const PathCounts::Sends before = counts_.now();
  source_ = session_.source(bytes);
  left_ = samples.size();
  if (session_.leads()) {
    Clock::time_point last = Clock::now();
    for (double& sample : samples) {
      answered_ = false;
      begin();
      run_until([this] { return answered_; });
      const Clock::time_point now = Clock::now();
      sample = std::chrono::duration<double, std::micro>(now - std::exchange(last, now)).count();
    }
    left_ = 0;
  } else {
    run_until([this] { return left_ == 0; });
  }
  // A call with data counts twice, as a message and as data: the data is what is measured.
  const Result<Path> path = session_.channel().path_of(memory_, bytes);
  path_ = memory_ == MemoryKind::host || !path.ok() ? counts_.since(before) : std::string(path_name(*path));
}

void MessageContender::ping_pong(std::size_t bytes, std::span<double> round_trip_us) {
  window_ = 0;
  run_batch(bytes, round_trip_us, [&] { send_bounce(); });
}

void MessageContender::windows(std::size_t bytes, std::size_t window, std::span<double> window_us) {
  window_ = window;
  run_batch(bytes, window_us, [&] {
    for (std::size_t i = 0; i < window; ++i) {
      if (memory_ != MemoryKind::host) {
        partner_.call<&Pinger::take_data>(device(source_));
      } else {
        partner_.call<&Pinger::take>(std::span(static_cast<const std::byte*>(source_.data), source_.bytes));
      }
    }
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

}  // namespace brant::bench
