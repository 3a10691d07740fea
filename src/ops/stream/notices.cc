#include "ops/stream/notices.h"

#include <algorithm>

namespace brant {

StreamNotices::StreamNotices(Engine& engine) noexcept : engine_(engine), events_(engine.device()) {
  for (Notice& notice : notices_) notice.cancel = [](OpOwner&) noexcept {};  // a stream cannot take back what it got
}

StreamNotices::~StreamNotices() {
  while (Notice* notice = pending_.pop_front()) events_.give_back(notice->event);
}

Result<StreamNotices::Notice*> StreamNotices::take(const OnStream& on) noexcept {
  if (on.op == nullptr) return nullptr;
  const auto free = std::find_if(notices_.begin(), notices_.end(), [](const Notice& notice) { return !notice.used; });
  if (free == notices_.end()) return Status::limit_reached;
  const Result<port::Event*> event = events_.take();
  if (!event) return event.status();
  free->event = *event;
  free->used = true;
  return &*free;
}

StreamControl::Report* StreamNotices::report_of(const Notice* notice, StreamControl& control) const noexcept {
  return notice == nullptr ? nullptr : &control.reports[notice - notices_.data()];
}

Status StreamNotices::launched(Status status, Notice* notice, const OnStream& on) noexcept {
  if (notice == nullptr) return status;
  if (status == Status::ok) status = engine_.device().streams()->record(notice->event, on.stream);
  if (status != Status::ok) {
    events_.give_back(notice->event);
    notice->used = false;
    return status;
  }
  notice->own(engine_.completions(), *on.op);
  pending_.push_back(*notice);
  return Status::in_progress;
}

unsigned StreamNotices::poll(const StreamControl& control) noexcept {
  unsigned ended = 0;
  for (Notice* notice = pending_.front(); notice != nullptr;) {
    Notice* following = pending_.next(*notice);
    Status status = engine_.device().streams()->poll(notice->event);
    if (status != Status::in_progress) {
      const StreamControl::Report report = control.reports[notice - notices_.data()];
      if (status == Status::ok) status = static_cast<Status>(report.status);
      pending_.remove(*notice);
      events_.give_back(notice->event);
      notice->used = false;
      engine_.completions().finish(*notice, {status, report.bytes});
      ++ended;
    }
    notice = following;
  }
  return ended;
}

}  // namespace brant
