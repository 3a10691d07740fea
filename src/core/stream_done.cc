#include "brant/core/stream_done.h"

#include <cstring>
#include <string>

#include "core/engine.h"
#include "core/event_pool.h"

namespace brant::detail {

/// The marks of one engine. Events are polled by progress while there are any.
class StreamWatch final : public Service, private Poller {
 public:
  explicit StreamWatch(Engine& engine) noexcept : engine_(engine), events_(engine.device()) {}
  ~StreamWatch() override {
    engine_.detach(static_cast<Poller&>(*this));
    while (StreamMark* mark = marks_.pop_front()) events_.give_back(std::exchange(mark->event, nullptr));
    while (due_.pop_front() != nullptr) {
    }
    if (stream_ != nullptr) engine_.device().streams()->destroy_stream(stream_);
  }

  /// Status of what was started; in_progress: `mark` waits.
  Status mark_end(port::Stream* stream, StreamMark& mark) {
    port::Streams* streams = engine_.device().streams();
    if (streams == nullptr) return Status::not_supported;
    const Result<port::Event*> event = events_.take();
    if (!event) return event.status();
    const Status recorded = streams->record(*event, stream);
    if (recorded != Status::ok) {
      events_.give_back(*event);
      return recorded;
    }
    mark.watch = this;
    mark.event = *event;
    marks_.push_back(mark);
    engine_.attach(static_cast<Poller&>(*this));
    return Status::in_progress;
  }

  Status copy(Buffer destination, ConstBuffer source, StreamMark& mark) {
    port::Streams* streams = engine_.device().streams();
    if (streams == nullptr) {  // no device: both are host memory
      std::memcpy(destination.data, source.data, source.bytes);
      return Status::ok;
    }
    if (stream_ == nullptr) {
      const Result<port::Stream*> made = streams->create_stream(port::StreamPriority::normal);
      if (!made) return made.status();
      stream_ = *made;
    }
    const Status queued = streams->copy(destination.data, source.data, source.bytes, stream_);
    return queued == Status::ok ? mark_end(stream_, mark) : queued;
  }

  void drop(StreamMark& mark) noexcept {
    if (mark.event == nullptr) {
      if (mark.hook.linked) due_.remove(mark);
      return;
    }
    port::Streams* streams = engine_.device().streams();
    while (streams->poll(mark.event) == Status::in_progress) {
    }
    marks_.remove(mark);
    end(mark);
  }

 private:
  using List = IntrusiveList<StreamMark, &StreamMark::hook>;

  void end(StreamMark& mark) noexcept {
    events_.give_back(std::exchange(mark.event, nullptr));
    if (marks_.empty()) engine_.detach(static_cast<Poller&>(*this));
  }

  unsigned poll() noexcept override {
    // Resumed coroutines may drop marks, of either list: those that are due are taken out first.
    for (StreamMark* mark = marks_.front(); mark != nullptr;) {
      StreamMark* following = List::next(*mark);
      const Status status = engine_.device().streams()->poll(mark->event);
      if (status != Status::in_progress) {
        marks_.remove(*mark);
        mark->status = status;
        end(*mark);
        if (mark->waiter) due_.push_back(*mark);
      }
      mark = following;
    }
    unsigned count = 0;
    for (; StreamMark* mark = due_.pop_front(); ++count) mark->waiter.resume();
    return count;
  }

  Engine& engine_;
  List marks_;
  List due_;  ///< Done, to be resumed.
  EventPool events_;
  port::Stream* stream_ = nullptr;
};

namespace {

void settle(Status status, StreamMark& mark) noexcept {
  if (status != Status::in_progress) mark.status = status;
}

}  // namespace

void start_mark(Runtime& runtime, port::Stream* stream, StreamMark& mark) {
  settle(runtime.worker().engine().service<StreamWatch>().mark_end(stream, mark), mark);
}

void start_copy(Runtime& runtime, Buffer destination, ConstBuffer source, StreamMark& mark) {
  if (destination.bytes != source.bytes) {
    throw Error(Status::invalid_argument, "a copy of " + std::to_string(source.bytes) + " bytes into " +
                                              std::to_string(destination.bytes) + ": the sizes must be equal");
  }
  if (source.bytes == 0) return;
  settle(runtime.worker().engine().service<StreamWatch>().copy(destination, source, mark), mark);
}

void drop_mark(StreamMark& mark) noexcept {
  if (mark.hook.linked) mark.watch->drop(mark);
}

void check_mark(const StreamMark& mark, const char* what) {
  if (mark.status == Status::ok) return;
  throw Error(mark.status, std::string(what) + " failed: " + std::string(status_text(mark.status)));
}

}  // namespace brant::detail
