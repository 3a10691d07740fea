#pragma once

#include "brant/base/clock.h"

namespace brant {

/// Threads that use one worker in turns, each as long as it has something to do: one that waits lets others in. All
/// but `end_sleep` are called by the thread whose turn it is, and return when it is its turn again.
class TurnTaking {
 public:
  TurnTaking() noexcept = default;
  TurnTaking(const TurnTaking&) = delete;
  TurnTaking& operator=(const TurnTaking&) = delete;
  virtual ~TurnTaking() = default;

  /// A wait is not over yet: others have a turn, if they want one. `moved`: something has, which others may wait for.
  virtual void offer(bool moved) noexcept = 0;
  /// Another thread sleeps on the worker's descriptors, as one of them at most does.
  [[nodiscard]] virtual bool another_sleeps() const noexcept = 0;
  /// Blocks until something has moved, until the other one sleeps no more, or the deadline.
  virtual void stand_by(TimePoint deadline) noexcept = 0;
  /// Around a sleep on the worker's descriptors: others have turns meanwhile.
  virtual void begin_sleep() noexcept = 0;
  virtual void end_sleep() noexcept = 0;
};

}  // namespace brant
