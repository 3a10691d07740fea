#pragma once

#include <coroutine>
#include <utility>

#include "brant/base/status.h"

namespace brant::detail {

class WaitPlace;

/// A coroutine that waits at a `WaitPlace`. Part of the awaiter, so it lies in the coroutine's frame and leaves the
/// place when the coroutine is destroyed: what is resumed later is never a frame that is gone.
class Awaiting {
 public:
  Awaiting() noexcept = default;
  Awaiting(const Awaiting&) = delete;
  Awaiting& operator=(const Awaiting&) = delete;
  ~Awaiting();

  /// False before it begins, once it was resumed, and once what it waited for has gone.
  [[nodiscard]] bool waits() const noexcept { return place_ != nullptr; }

 private:
  friend class WaitPlace;

  WaitPlace* place_ = nullptr;
  std::coroutine_handle<> coroutine_;
};

/// Where one coroutine waits for something to happen. Whichever of the two goes first, the place or who waits there,
/// tells the other. One thread; no allocation.
class WaitPlace {
 public:
  WaitPlace() noexcept = default;
  WaitPlace(const WaitPlace&) = delete;
  WaitPlace& operator=(const WaitPlace&) = delete;
  ~WaitPlace() { clear(); }

  /// From now on `waiting` stands here. Throws invalid_argument while somebody else does: the second to await would
  /// otherwise put the first to sleep for ever.
  void admit(Awaiting& waiting, std::coroutine_handle<> coroutine) {
    if (waiting_ != nullptr) [[unlikely]]
      throw Error(Status::invalid_argument,
                  "a second coroutine awaits what another one awaits already: an operation, future or counter resumes "
                  "one. Give each coroutine its own, or let the one that is resumed tell the others");
    waiting.place_ = this;
    waiting.coroutine_ = coroutine;
    waiting_ = &waiting;
  }
  /// Resumes who waits here, if somebody does. The last thing to be done to a place: the coroutine may destroy it.
  void resume() noexcept {
    if (waiting_ == nullptr) return;
    const std::coroutine_handle<> coroutine = waiting_->coroutine_;
    clear();
    coroutine.resume();
  }
  /// Nobody waits here any more; who did is never resumed.
  void clear() noexcept {
    if (waiting_ != nullptr) std::exchange(waiting_, nullptr)->place_ = nullptr;
  }

 private:
  Awaiting* waiting_ = nullptr;
};

inline Awaiting::~Awaiting() {
  if (place_ != nullptr) place_->clear();
}

}  // namespace brant::detail
