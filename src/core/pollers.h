#pragma once

#include "brant/base/intrusive_list.h"

namespace brant {

/// Something to be looked at in every progress call while it is attached: device events, rings in shared memory,
/// doorbells.
class Poller {
 public:
  ListHook<Poller> poller_hook;
  /// Returns the number of events seen.
  virtual unsigned poll() noexcept = 0;
  /// True: there is nothing to see now, and what it waits for, which may never come, wakes the process by other means.
  [[nodiscard]] virtual bool lets_sleep() const noexcept { return false; }

 protected:
  ~Poller() = default;
};

/// Those that are attached, in the order in which they were.
class Pollers {
 public:
  Pollers() = default;
  Pollers(const Pollers&) = delete;
  Pollers& operator=(const Pollers&) = delete;

  /// Both may be repeated, and called from `Poller::poll`, for any poller.
  void attach(Poller& poller) noexcept {
    if (!List::linked(poller)) list_.push_back(poller);
  }
  void detach(Poller& poller) noexcept {
    if (!List::linked(poller)) return;
    if (next_ == &poller) next_ = List::next(poller);
    list_.remove(poller);
  }

  /// A poller may take itself out of the list, or any other: the round goes on with the next of those that stay.
  unsigned poll() noexcept {
    unsigned events = 0;
    next_ = list_.front();
    while (Poller* poller = next_) {
      next_ = List::next(*poller);
      events += poller->poll();
    }
    return events;
  }

  /// One of them does not let the process sleep.
  [[nodiscard]] bool busy() const noexcept {
    const Poller* poller = list_.front();
    while (poller != nullptr && poller->lets_sleep()) poller = List::next(*poller);
    return poller != nullptr;
  }

 private:
  using List = IntrusiveList<Poller, &Poller::poller_hook>;

  List list_;
  Poller* next_ = nullptr;  ///< In this round.
};

}  // namespace brant
