#include "ops/stream/wait.h"

#include <new>

#include "base/log.h"
#include "base/seconds.h"
#include "ops/stream/end.h"

namespace brant {

StreamWait::StreamWait(StreamEnd& end) noexcept : end_(end) {
  cancel = [](OpOwner& self) noexcept { static_cast<StreamWait&>(self).stop(Status::canceled); };
  fire = [](Timer& self) noexcept { static_cast<StreamWait&>(self).on_late(); };
}

Status StreamWait::start(Op& op, std::chrono::nanoseconds patience) noexcept {
  patience_ = patience;
  const TimePoint deadline = deadline_after(patience);
  try {
    if (deadline != kNever) end_.engine().timers().set(*this, deadline);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  own(end_.engine().completions(), op);
  return Status::in_progress;
}

void StreamWait::stop(Status why) noexcept {
  end_.engine().timers().clear(*this);
  end_.engine().completions().finish(*this, {why, 0});
}

void StreamWait::on_late() noexcept {
  if (!waits()) return;
  log::error(
      "stream channel {} to rank {}: the other end was not prepared within {:.1f} s. Open and prepare it there too, or "
      "have more patience (StreamChannelOptions)",
      end_.id().value, end_.peer().rank.value, in_seconds(patience_));
  stop(Status::timed_out);
}

}  // namespace brant
