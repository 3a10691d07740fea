#include "core/stream_waits.h"

#include <algorithm>
#include <new>

#include "base/log.h"

namespace brant {

StreamWaits::~StreamWaits() {
  for (const Last& last : lasts_) device_.streams()->destroy_event(last.behind);
}

Result<port::Event*> StreamWaits::event_for(port::Stream* stream) noexcept {
  const auto known = std::ranges::find(lasts_, stream, &Last::stream);
  if (known != lasts_.end()) return known->behind;
  try {
    lasts_.reserve(lasts_.size() + 1);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  const Result<port::Event*> made = device_.streams()->create_event(false);
  if (made) lasts_.push_back({stream, *made});
  return made;
}

void StreamWaits::note(port::Stream* stream) noexcept {
  if (const Result<bool> captures = device_.streams()->captures(stream); captures && *captures) return;
  const std::lock_guard lock(mutex_);
  const Result<port::Event*> behind = event_for(stream);
  const Status status = behind ? device_.streams()->record(*behind, stream) : behind.status();
  noted_.store(!lasts_.empty());
  if (status == Status::ok) return;
  log::warn("a wait of a stream is not known to this process ({}): free no memory of the device until it has passed",
            status_text(status));
}

bool StreamWaits::any() noexcept {
  if (entering_.load() != 0) return true;
  if (!noted_.load()) return false;
  const std::lock_guard lock(mutex_);
  std::erase_if(lasts_, [&](const Last& last) {
    if (device_.streams()->poll(last.behind) == Status::in_progress) return false;
    device_.streams()->destroy_event(last.behind);
    return true;
  });
  noted_.store(!lasts_.empty());
  return !lasts_.empty() || entering_.load() != 0;
}

}  // namespace brant
