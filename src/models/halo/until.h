#pragma once

#include <coroutine>

#include "brant/core/wait_place.h"

namespace brant::halo {

/// To be awaited: until `done()` holds, which is looked at when the wait begins; from then on whoever makes it hold
/// resumes the place.
template <typename Done>
struct Until {
  detail::WaitPlace& place;
  Done done;
  detail::Awaiting waiting = {};

  [[nodiscard]] bool await_ready() const noexcept { return done(); }
  void await_suspend(std::coroutine_handle<> waiter) { place.admit(waiting, waiter); }
  void await_resume() const noexcept {}
};
template <typename Done>
Until(detail::WaitPlace&, Done) -> Until<Done>;

}  // namespace brant::halo
