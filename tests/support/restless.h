#pragma once

#include <chrono>

#include "brant/base/clock.h"
#include "brant/core/task.h"
#include "brant/core/timer.h"
#include "core/engine.h"

/// What never rests, for tests of who waits beside it. It rests after 20 s, so that such a test fails and does not
/// hang.
namespace brant::test {

constexpr std::chrono::seconds kRestlessTime{20};

/// Has always seen something, as a network that is never still.
class RestlessPoller final : public Poller {
 public:
  unsigned poll() noexcept override { return rests() ? 0 : 1; }
  [[nodiscard]] bool rests() const noexcept { return Clock::now() >= end_; }

 private:
  const TimePoint end_ = Clock::now() + kRestlessTime;
};

/// Yields until `over`.
inline Task<void> yield_until(Worker& worker, const bool& over) {
  const TimePoint end = Clock::now() + kRestlessTime;
  while (!over && Clock::now() < end) co_await yield(worker);
}

}  // namespace brant::test
