#include "bench/runner/rma_contender.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include <fmt/format.h>

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
      images_(session.runtime()),
      segment_(expose(session.runtime(), session.landing(segment_bytes(options)))),
      batch_(session.runtime(), there_, options.window, options.path, options.spin) {
  if (counts()) session.stay_awake();  // over the network the owner's CPU counts, with us as with raw UCX
  const SegmentTicket ticket = segment_.ticket();
  session.partner().send_block(ticket.bytes());
  there_ =
      RemoteSegment(session.runtime(), session.channel_partner(), SegmentTicket(session.partner().receive_block()));
}

void RmaContender::transfer(Buffer local, std::size_t window) {
  for (std::size_t i = 0; i < window; ++i) {
    if (counts()) {
      batch_.add_atomic(0, counting(local.bytes), before_);
    } else {
      batch_.add(direction(), 0, local);
    }
  }
  batch_.finish();
}

Task<void> RmaContender::await_each(Buffer local, std::span<double> us) {
  const RmaOptions options{.path = options_.path};
  Clock::time_point last = Clock::now();
  for (double& sample : us) {
    const OpResult result = co_await Operation(Moment::delivered, [&](Op& op) noexcept {
      if (counts()) return there_.post_atomic(0, counting(local.bytes), op, &before_, options_.path);
      return puts() ? there_.post_put(0, local, op, options) : there_.post_get(0, local, op, options);
    });
    if (!result.ok()) batch_.fail(result.status, model_name(options_.model), local);
    sample = lap_us(last);
  }
}

/// Nothing moves of no bytes, and nothing is counted: then what would be chosen.
void RmaContender::note_path(const PathCounts::Sends& before, std::size_t bytes) {
  path_ = counts_.since(before);
  if (bytes != 0) return;
  const Result<Path> path = there_.path_of(options_.memory, bytes, direction(), {.path = options_.path});
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

void RmaContender::expect_image(Buffer memory, std::uint64_t number) {
  const std::optional<std::size_t> wrong = images_.first_wrong(memory, number);
  if (!wrong) return;
  throw Error(
      Status::internal,
      fmt::format("check: {} {} of {} bytes of {} memory is wrong at rank {}: byte {}", model_name(options_.model),
                  number, memory.bytes, memory_kind_name(options_.memory), session_.runtime().rank().value, *wrong));
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
  const Buffer here = session_.leads() ? session_.source(bytes) : session_.landing(bytes);
  for (std::uint64_t number = 0; number < times; ++number) {
    // Whose bytes are moved has a pattern of this number, the other one poison.
    session_.leads() == puts() ? images_.fill(here, number) : images_.poison(here, number);
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
