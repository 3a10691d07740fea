#include "bench/runner/rma_contender.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "bench/runner/pattern.h"

namespace brant::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// A segment of nothing is none.
std::size_t segment_bytes(const Options& options) noexcept { return std::max<std::size_t>(options.sizes.back(), 1); }

Atomic counting(std::size_t bytes) noexcept {
  return bytes == 4 ? Atomic::of<std::uint32_t>(AtomicOp::add, 1) : Atomic::of<std::uint64_t>(AtomicOp::add, 1);
}

double lap_us(Clock::time_point& last) noexcept {
  const Clock::time_point now = Clock::now();
  return std::chrono::duration<double, std::micro>(now - std::exchange(last, now)).count();
}

}  // namespace

RmaContender::RmaContender(Session& session, const Options& options)
    : session_(session),
      options_(options),
      counts_(session.runtime(), options.model == Model::get ? &PathTally::receives : &PathTally::sends),
      window_(options.window),
      segment_(expose(session.runtime(), session.landing(segment_bytes(options)))) {
  if (counts()) session.stay_awake();  // over the network the owner's CPU counts, with us as with raw UCX
  const SegmentTicket ticket = segment_.ticket();
  session.partner().send_block(ticket.bytes());
  there_ =
      RemoteSegment(session.runtime(), session.channel_partner(), SegmentTicket(session.partner().receive_block()));
}

Status RmaContender::post(Buffer local, Op& op) noexcept {
  if (counts()) return there_.post_atomic(0, counting(local.bytes), op, &before_, options_.path);
  const RmaOptions options{.path = options_.path};
  return puts() ? there_.post_put(0, local, op, options) : there_.post_get(0, local, op, options);
}

template <typename Predicate>
void RmaContender::wait(Predicate&& done) noexcept {
  Worker& worker = session_.runtime().worker();
  if (!options_.spin) {
    static_cast<void>(worker.wait_until(done));
    return;
  }
  while (!done()) static_cast<void>(worker.progress());
}

void RmaContender::fail(const OpResult& result, std::size_t bytes) const {
  throw Error(result.status,
              fmt::format("rank {} could not {} {} bytes of {} memory {} rank {}: {}", session_.runtime().rank().value,
                          model_name(options_.model), bytes, memory_kind_name(options_.memory),
                          puts() ? "into" : "from", there_.rank().value, status_text(result.status)));
}

void RmaContender::transfer(Buffer local, std::size_t window) {
  for (std::size_t i = 0; i < window && window_.result().ok(); ++i) {
    window_.add(Moment::delivered, [&](Op& op) noexcept { return post(local, op); });
  }
  wait([&]() noexcept { return window_.pending() == 0 || !window_.result().ok(); });
  const OpResult result = window_.result().ok() ? session_.runtime().wait(window_.drain()) : window_.result();
  if (result.ok() && result.bytes == local.bytes * window) return;
  window_.withdraw();
  fail({result.ok() ? Status::internal : result.status, result.bytes}, local.bytes);
}

Task<void> RmaContender::await_each(Buffer local, std::span<double> us) {
  Clock::time_point last = Clock::now();
  for (double& sample : us) {
    const OpResult result = co_await Operation(Moment::delivered, [&](Op& op) noexcept { return post(local, op); });
    if (!result.ok()) fail(result, local.bytes);
    sample = lap_us(last);
  }
}

/// Nothing moves of no bytes, and nothing is counted: then what would be chosen.
void RmaContender::note_path(const PathCounts::Sends& before, std::size_t bytes) {
  path_ = counts_.since(before);
  if (bytes != 0) return;
  const auto direction = puts() ? RmaDirection::put : RmaDirection::get;
  const Result<Path> path = there_.path_of(options_.memory, bytes, direction, {.path = options_.path});
  if (path) path_ = path_name(*path);
}

void RmaContender::ping_pong(std::size_t bytes, std::span<double> us) {
  if (!options_.coroutines || !session_.leads()) return windows(bytes, 1, us);
  const PathCounts::Sends before = counts_.now();
  session_.runtime().run(await_each(session_.source(bytes), us));
  note_path(before, bytes);
}

/// The partner waits in the barrier that follows.
void RmaContender::windows(std::size_t bytes, std::size_t window, std::span<double> window_us) {
  if (!session_.leads()) return;
  const PathCounts::Sends before = counts_.now();
  const Buffer local = session_.source(bytes);
  Clock::time_point last = Clock::now();
  for (double& sample : window_us) {
    transfer(local, window);
    sample = lap_us(last);
  }
  note_path(before, bytes);
}

void RmaContender::set_image(Buffer memory, std::uint64_t number, bool poison) {
  poison ? fill_poison(image_, number) : fill_pattern(image_, number);
  session_.runtime().copy(memory, ConstBuffer(image_.data(), image_.size(), MemoryKind::host));
}

void RmaContender::expect_image(Buffer memory, std::uint64_t number) {
  session_.runtime().copy(Buffer(image_.data(), image_.size(), MemoryKind::host), memory);
  const std::optional<std::size_t> wrong = first_wrong_byte(image_, number);
  if (!wrong) return;
  throw Error(
      Status::internal,
      fmt::format("check: {} {} of {} bytes of {} memory is wrong at rank {}: byte {}", model_name(options_.model),
                  number, image_.size(), memory_kind_name(options_.memory), session_.runtime().rank().value, *wrong));
}

/// Nobody else counts there.
void RmaContender::check_counts(std::size_t bytes, std::size_t times) {
  if (!session_.leads()) return;
  const Buffer local(&before_, bytes, MemoryKind::host);
  before_ = 0;
  transfer(local, 1);
  for (std::size_t i = 0; i < times; ++i) {
    const std::uint64_t last = before_;
    transfer(local, 1);
    const std::uint64_t next = bytes == 4 ? static_cast<std::uint32_t>(last + 1) : last + 1;
    if (before_ == next) continue;
    throw Error(Status::internal,
                fmt::format("check: a fetch-add of {} bytes was told {} behind {}", bytes, before_, last));
  }
}

/// The owner of the memory makes it ready and looks at it; in between the leader has its turn.
void RmaContender::check(std::size_t bytes, std::size_t times) {
  if (counts()) return check_counts(bytes, times);
  std::array<std::byte, 1> turn{};
  Link& partner = session_.partner();
  image_.assign(bytes, std::byte{});
  const Buffer here = session_.leads() ? session_.source(bytes) : session_.landing(bytes);
  for (std::uint64_t number = 0; number < times; ++number) {
    // Whose bytes are moved has a pattern of this number, the other one poison.
    set_image(here, number, session_.leads() != puts());
    if (session_.leads()) {
      partner.receive(turn);
      transfer(here, 1);
      if (!puts()) expect_image(here, number);
      partner.send(turn);
      partner.receive(turn);
    } else {
      partner.send(turn);
      partner.receive(turn);
      if (puts()) expect_image(here, number);
      partner.send(turn);
    }
  }
}

RawRmaContender::RawRmaContender(Session& session, const Options& options)
    : session_(session), ucx_(session.open_rival(UcxBaselineUse::one_sided)) {
  if (options.model == Model::get) what_ = UcxBaseline::OneSided::get;
  if (options.model == Model::fetch_add) what_ = UcxBaseline::OneSided::fetch_add;
  const std::size_t bytes = segment_bytes(options);
  session.partner().send_block(ucx_.expose(session.landing(bytes).data, bytes));
  ucx_.reach(session.partner().receive_block());
}

void RawRmaContender::windows(std::size_t bytes, std::size_t window, std::span<double> window_us) {
  if (session_.leads()) ucx_.one_sided(what_, session_.source(bytes).data, bytes, window, window_us);
}

}  // namespace brant::bench
