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

double lap_us(Clock::time_point& last) noexcept {
  const Clock::time_point now = Clock::now();
  return std::chrono::duration<double, std::micro>(now - std::exchange(last, now)).count();
}

}  // namespace

RmaContender::RmaContender(Session& session, const Options& options)
    : session_(session),
      options_(options),
      counts_(session.runtime(), options.model == Model::put ? &PathTally::sends : &PathTally::receives),
      images_(session.runtime()),
      segment_(expose(session.runtime(), session.landing(segment_bytes(options)))),
      batch_(session.runtime(), there_, options.window, options.path, options.spin) {
  const SegmentTicket ticket = segment_.ticket();
  session.partner().send_block(ticket.bytes());
  there_ =
      RemoteSegment(session.runtime(), session.channel_partner(), SegmentTicket(session.partner().receive_block()));
}

void RmaContender::transfer(Buffer local, std::size_t window) {
  for (std::size_t i = 0; i < window; ++i) batch_.add(direction(), 0, local);
  batch_.finish();
}

Task<void> RmaContender::await_each(Buffer local, std::span<double> us) {
  const RmaOptions options{.path = options_.path};
  Clock::time_point last = Clock::now();
  for (double& sample : us) {
    const OpResult result = puts() ? co_await there_.put(0, local, options) : co_await there_.get(0, local, options);
    if (!result.ok()) batch_.fail(result.status, direction(), local);
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

/// The owner of the memory makes it ready and looks at it; in between the leader has its turn.
void RmaContender::check(std::size_t bytes, std::size_t times) {
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
    : session_(session),
      ucx_(session.open_rival(UcxBaselineUse::one_sided)),
      what_(options.model == Model::put ? UcxBaseline::OneSided::put : UcxBaseline::OneSided::get) {
  const std::size_t bytes = segment_bytes(options);
  session.partner().send_block(ucx_.expose(session.landing(bytes).data, bytes));
  ucx_.reach(session.partner().receive_block());
}

void RawRmaContender::windows(std::size_t bytes, std::size_t window, std::span<double> window_us) {
  if (session_.leads()) ucx_.one_sided(what_, session_.source(bytes).data, bytes, window, window_us);
}

}  // namespace brant::bench
