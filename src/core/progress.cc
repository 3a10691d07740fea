#include "core/progress.h"

#include "base/progress_scope.h"
#include "core/batch_time.h"

namespace brant {
namespace {

constexpr unsigned kFireLimit = 256;           // user completions in one progress call
constexpr unsigned kPeerCheckInterval = 1024;  // idle progress calls between looks at the clock
constexpr unsigned kBusyWeight = 64;           // so many idle calls count as much as one that may have copied megabytes
constexpr auto kPeerCheckPeriod = std::chrono::milliseconds(2);

}  // namespace

unsigned Progress::move() noexcept {
  const ProgressScope scope;
  unsigned events = links_.poll();
  wire_turn_ += 1 + events;
  // Whoever waits for what came over a link does not wait for a look at the network too, unless that is overdue.
  const unsigned turn = events == 0 ? kWireTurn : kWireTurnMoving;
  if (!links_.possible() || wire_ops_ > 0 || wire_turn_ >= turn) {
    wire_turn_ = 0;
    events += wire_.progress();
    events += wire_.deliver(kDeliverLimit);
  }
  events += pollers_.poll();
  return events;
}

unsigned Progress::step() noexcept {
  silence_.begin_progress();
  const unsigned events = move();
  unsigned user_calls = commands_.run();
  if (peers_.any_suspected()) look_around();
  counters_.progress_calls.add();
  calls_since_check_ += events + user_calls == 0 ? 1 : kBusyWeight;
  const bool look_at_clock = calls_since_check_ >= kPeerCheckInterval;
  unsigned timers_fired = 0;
  if (look_at_clock || !timers_.empty()) {
    const TimePoint now = clock_.look();
    if (look_at_clock) calls_since_check_ = 0;
    if (!timers_.empty()) timers_fired = timers_.run(now);
    if (look_at_clock && now >= next_peer_check_) {
      next_peer_check_ = now + kPeerCheckPeriod;
      look_around();
    }
  }
  user_calls += completions_.fire(kFireLimit);
  if (user_calls + timers_fired != 0) note_user_code();
  silence_.end_progress(events, user_calls);
  return events + user_calls;
}

void Progress::step_while_moving(std::chrono::nanoseconds limit) noexcept {
  const TimePoint end = deadline_after(limit);
  while (step() != 0 && Clock::now() < end) {
  }
}

void Progress::look_around() noexcept {
  const ProgressScope scope;
  peers_.check();
  joined_peers_.look_around();
  services_.look_around();
}

}  // namespace brant
