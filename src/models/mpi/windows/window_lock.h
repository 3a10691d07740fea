#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace brant::mpi {

/// The lock of one member's memory, which that member keeps. Locks are given in the order in which they were asked for.
class WindowLock {
 public:
  struct Request {
    int source = 0;
    bool exclusive = false;
    std::uint64_t ticket = 0;
  };

  /// Calls `grant(request)` if it has the lock now; else it waits for it.
  template <typename Grant>
  void ask(const Request& request, Grant&& grant) {
    waiting_.push_back(request);
    give(grant);
  }

  /// A member lets go of its lock, or has died: then it waits for none any more either.
  template <typename Grant>
  void let_go(int source, bool died, Grant&& grant) {
    std::erase_if(holders_, [source](const Request& held) { return held.source == source; });
    if (died) std::erase_if(waiting_, [source](const Request& waits) { return waits.source == source; });
    give(grant);
  }

 private:
  template <typename Grant>
  void give(Grant& grant) {
    while (!waiting_.empty()) {
      const Request next = waiting_.front();
      const bool is_free = holders_.empty() || (!next.exclusive && !holders_.front().exclusive);
      if (!is_free) return;
      waiting_.pop_front();
      holders_.push_back(next);
      grant(next);
    }
  }

  std::vector<Request> holders_;
  std::deque<Request> waiting_;
};

}  // namespace brant::mpi
