#pragma once

#include <chrono>

#include "brant/core/timer.h"
#include "core/engine.h"

namespace brant {

class StreamEnd;

/// The operation that waits for the other end in `StreamChannel::prepare`, and when its patience is over.
class StreamWait final : private OpOwner, private Timer {
 public:
  explicit StreamWait(StreamEnd& end) noexcept;
  ~StreamWait() { stop(Status::canceled); }
  StreamWait(const StreamWait&) = delete;
  StreamWait& operator=(const StreamWait&) = delete;

  /// in_progress, no_memory.
  Status start(Op& op, std::chrono::nanoseconds patience) noexcept;
  /// Tells it, if it waits.
  void stop(Status why) noexcept;
  [[nodiscard]] bool waits() const noexcept { return observed(); }

 private:
  void on_late() noexcept;

  StreamEnd& end_;
  std::chrono::nanoseconds patience_{};
};

}  // namespace brant
