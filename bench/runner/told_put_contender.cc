#include "bench/runner/told_put_contender.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench/runner/us_since.h"

namespace brant::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// The least that others map.
constexpr std::size_t kFlagBytes = std::size_t{64} << 10;
constexpr std::chrono::seconds kPatience{20};

}  // namespace

ToldPutContender::ToldPutContender(Session& session, const Options& options)
    : session_(session),
      counts_(session.runtime(), &PathTally::sends),
      images_(session.runtime()),
      space_(session.runtime()),
      landing_(space_.adopt(session.landing(std::max<std::size_t>(options.sizes.back(), 1)))),
      flags_(space_.create(MemoryKind::host, kFlagBytes)),
      own_flag_(flags_.allocate<std::uint64_t>(1 + options.window)),
      puts_(options.window),
      forced_(options.path) {
  session.stay_awake();  // the target looks at a word
  std::fill_n(flags_.local(own_flag_), 1 + options.window, 0);
  meet();
}

void ToldPutContender::meet() {
  const std::array own{landing_.begin(), own_flag_.as<std::byte>()};
  session_.partner().send_block(std::as_bytes(std::span(own)));
  const std::vector<std::byte> told = session_.partner().receive_block();
  std::array<GlobalPtr<std::byte>, 2> theirs;
  if (told.size() != sizeof(theirs)) throw Error(Status::internal, "the other process sent no pointers");
  std::memcpy(theirs.data(), told.data(), sizeof(theirs));
  there_ = theirs[0];
  flag_there_ = theirs[1].as<std::uint64_t>();
  for (const GlobalPtr<std::byte> at : theirs)
    require(session_.runtime().wait(space_.reach(at)), "reach the memory of");
}

void ToldPutContender::require(const OpResult& result, const char* what) const {
  if (result.ok()) return;
  throw Error(result.status, fmt::format("rank {} could not {} rank {}: {}", session_.runtime().rank().value, what,
                                         session_.channel_partner().value, status_text(result.status)));
}

void ToldPutContender::put(ConstBuffer from) {
  const OpResult put = session_.runtime().wait(
      space_.put(there_, from, {.path = forced_, .shapes = nullptr, .at_target = AtTarget::set(flag_there_, ++told_)}));
  require(put, "put into memory of");
}

template <typename Come>
void ToldPutContender::await(Come&& come) {
  if (const Status status = session_.runtime().worker().wait_until(std::forward<Come>(come), kPatience);
      status != Status::ok)
    throw Error(status,
                fmt::format("rank {} waits in vain for the word behind a put of rank {}: {}",
                            session_.runtime().rank().value, session_.channel_partner().value, status_text(status)));
}

void ToldPutContender::await_put() {
  ++heard_;
  const std::atomic_ref<std::uint64_t> flag(*flags_.local(own_flag_));
  await([&]() noexcept { return flag.load(std::memory_order_acquire) >= heard_; });
}

void ToldPutContender::ping_pong(std::size_t bytes, std::span<double> round_trip_us) {
  const Buffer from = session_.source(bytes);
  for (double& sample : round_trip_us) {
    const Clock::time_point begin = Clock::now();
    if (session_.leads()) put(from);
    await_put();
    if (!session_.leads()) put(from);
    sample = us_since(begin);
  }
  note_path(from);
}

/// Of one more: words behind the bytes may be puts as well.
void ToldPutContender::note_path(ConstBuffer from) {
  const PathCounts::Sends before = counts_.now();
  CopyOptions options{.path = forced_, .shapes = nullptr, .at_target = {}};
  require(session_.runtime().wait(space_.put(there_, from, std::move(options))), "put into memory of");
  path_ = counts_.since(before);
}

void ToldPutContender::windows(std::size_t bytes, std::size_t window, std::span<double> window_us) {
  for (double& sample : window_us) {
    const Clock::time_point begin = Clock::now();
    ++windows_;
    if (session_.leads()) {
      put_window(session_.source(bytes), window);
      await_put();
    } else {
      await_window(window);
      put(session_.source(std::min(bytes, kReplyBytes)));
    }
    sample = us_since(begin);
  }
  note_path(session_.source(bytes));
}

void ToldPutContender::put_window(ConstBuffer from, std::size_t window) {
  for (std::size_t i = 0; i < window; ++i) {
    puts_.add(Moment::delivered, [&](Op& op) noexcept {
      AtTarget told = AtTarget::set(flag_there_ + static_cast<std::ptrdiff_t>(1 + i), windows_);
      return space_.post_put(there_, from, op, {.path = forced_, .shapes = nullptr, .at_target = std::move(told)});
    });
  }
  require(session_.runtime().wait(puts_.drain()), "put into memory of");
}

void ToldPutContender::await_window(std::size_t window) {
  std::uint64_t* const flags = flags_.local(own_flag_);
  std::size_t seen = 0;
  await([&]() noexcept {
    while (seen < window && std::atomic_ref(flags[1 + seen]).load(std::memory_order_acquire) >= windows_) ++seen;
    return seen == window;
  });
}

void ToldPutContender::check(std::size_t bytes, std::size_t times) {
  for (std::uint64_t number = 0; number < times; ++number) {
    images_.fill(session_.source(bytes), number);
    images_.poison(session_.landing(bytes), number);
    session_.barrier();
    put(session_.source(bytes));
    await_put();
    if (const std::optional<std::size_t> wrong = images_.first_wrong(session_.landing(bytes), number)) {
      throw Error(Status::internal, fmt::format("check: put {} of {} bytes is wrong at rank {} when the word behind it "
                                                "has come: byte {}",
                                                number, bytes, session_.runtime().rank().value, *wrong));
    }
    session_.barrier();
  }
}

}  // namespace brant::bench
