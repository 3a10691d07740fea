#include "core/sleeping.h"

#include <algorithm>

namespace brant {
namespace {

constexpr auto kLongest = std::chrono::milliseconds(100);

}  // namespace

Sleeping::Sleeping(bool wanted, port::Wire& wire, HostLinks& links, Pollers& pollers, Commands& commands,
                   TimerQueue& timers, Completions& completions, Progress& progress, Waiter& waiter) noexcept
    : wanted_(wanted),
      wire_(wire),
      links_(links),
      pollers_(pollers),
      commands_(commands),
      timers_(timers),
      completions_(completions),
      progress_(progress),
      waiter_(waiter) {}

bool Sleeping::arm() noexcept {
  if (!wanted_ || pollers_.busy() || completions_.due()) return false;
  // Looked at once more behind the alarm: who sets a word that is polled looks at the alarm afterwards.
  if (links_.possible() && (!links_.arm() || pollers_.busy())) return false;
  if (!wire_.capabilities().can_sleep || wire_.arm()) return true;
  progress_.look_at_wire();
  return false;
}

std::chrono::nanoseconds Sleeping::time_left() noexcept {
  constexpr std::chrono::nanoseconds kAtOnce{0};
  waiter_.quieten();
  if (commands_.waiting() || !arm()) return kAtOnce;
  progress_.look_at_wire();  // it may be what wakes us
  return std::clamp<std::chrono::nanoseconds>(timers_.next() - Clock::now(), kAtOnce, longest());
}

void Sleeping::sleep(TimePoint deadline, TurnTaking* turns) noexcept {
  deadline = std::min(deadline, timers_.next());
  const std::chrono::milliseconds limit = longest();
  if (turns != nullptr) turns->begin_sleep();
  waiter_.sleep(deadline, limit);
  if (turns != nullptr) turns->end_sleep();
  progress_.look_at_wire();  // it may be what woke us
}

/// A wire that cannot wake us is looked at every millisecond.
std::chrono::milliseconds Sleeping::longest() const noexcept {
  return wire_.capabilities().can_sleep ? kLongest : std::chrono::milliseconds(1);
}

}  // namespace brant
