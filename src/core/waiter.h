#pragma once

#include "base/unique_fd.h"
#include "brant/base/clock.h"

namespace brant {

/// The file descriptors a worker sleeps on, and the alarm by which other threads wake it.
class Waiter {
 public:
  Waiter();

  /// Adds a descriptor that becomes readable when there is work. It must outlive the waiter or be closed to leave it.
  void add(int fd);

  /// Sleeps until a descriptor is readable, `wake` was called, or the deadline. At most `limit`.
  void sleep(TimePoint deadline, std::chrono::milliseconds limit) noexcept;

  /// From any thread.
  void wake() noexcept;
  /// Takes back what `wake` did; for who looks afterwards at what it was called for.
  void quieten() noexcept;

  /// Readable while `sleep` would return at once.
  [[nodiscard]] int fd() const noexcept { return epoll_.get(); }

 private:
  UniqueFd epoll_;
  UniqueFd alarm_;
};

}  // namespace brant
