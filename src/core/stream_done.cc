#include "brant/core/stream_done.h"

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "core/engine.h"
#include "core/event_pool.h"

namespace brant::detail {

constexpr auto kCopyPatience = std::chrono::seconds(10);

/// The marks of one engine. Events are polled by progress while there are any.
class StreamWatch final : public Service, private Poller {
 public:
  explicit StreamWatch(Engine& engine) noexcept : engine_(engine), events_(engine.device()) {}
  ~StreamWatch() override {
    engine_.pollers().detach(*this);
    while (StreamMark* mark = marks_.pop_front()) events_.give_back(std::exchange(mark->event, nullptr));
    for (port::Event* event : forsaken_) events_.give_back(event);
    if (stream_ != nullptr) engine_.device().streams()->destroy_stream(stream_);
  }

  /// Status of what was started; in_progress: `mark` waits.
  Status mark_end(port::Stream* stream, StreamMark& mark) {
    port::Streams* streams = engine_.device().streams();
    if (streams == nullptr) return Status::not_supported;
    forsaken_.reserve(forsaken_.size() + watched_ + 1);  // `drop` cannot fail
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
    ++watched_;
    engine_.pollers().attach(*this);
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

  /// An event that has not come stays here until it has: it cannot be recorded anew before.
  void drop(StreamMark& mark) noexcept {
    mark.op.detach();
    if (mark.event == nullptr) return;
    forsaken_.push_back(leave(mark));
  }

  void drop_copy(StreamMark& mark) noexcept {
    port::Streams* streams = engine_.device().streams();
    const TimePoint deadline = deadline_after(kCopyPatience);
    while (mark.event != nullptr && streams->poll(mark.event) == Status::in_progress) {
      if (Clock::now() >= deadline) {
        log::error(
            "rank {}: a copy that nobody waits for any more has not ended within {} s on '{}': the device may still "
            "use its buffers. Wait for copy_done before its coroutine is destroyed",
            engine_.job().rank, kCopyPatience.count(), engine_.device().capabilities().name);
        break;
      }
      std::this_thread::yield();
    }
    drop(mark);
  }

 private:
  using List = IntrusiveList<StreamMark, &StreamMark::hook>;

  port::Event* leave(StreamMark& mark) noexcept {
    marks_.remove(mark);
    --watched_;
    return std::exchange(mark.event, nullptr);
  }

  unsigned poll() noexcept override {
    unsigned count = 0;
    port::Streams* streams = engine_.device().streams();
    for (StreamMark* mark = marks_.front(); mark != nullptr;) {
      StreamMark* following = List::next(*mark);
      mark->status = streams->poll(mark->event);
      if (mark->status != Status::in_progress) {
        events_.give_back(leave(*mark));
        engine_.completions().complete(mark->op, {mark->status, 0});
        ++count;
      }
      mark = following;
    }
    std::erase_if(forsaken_, [&](port::Event* event) {
      const bool ended = streams->poll(event) != Status::in_progress;
      if (ended) events_.give_back(event);
      return ended;
    });
    if (marks_.empty() && forsaken_.empty()) engine_.pollers().detach(*this);
    return count;
  }

  Engine& engine_;
  List marks_;
  std::size_t watched_ = 0;             ///< Length of `marks_`.
  std::vector<port::Event*> forsaken_;  ///< Of marks that went before the stream came there.
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
  if (mark.event != nullptr) mark.watch->drop(mark);
}

void drop_copy(StreamMark& mark) noexcept {
  if (mark.event != nullptr) mark.watch->drop_copy(mark);
}

void await_mark(StreamMark& mark, std::coroutine_handle<> waiter) noexcept {
  mark.op.delivered = {
      [](void* frame, const OpResult&) noexcept { std::coroutine_handle<>::from_address(frame).resume(); },
      waiter.address()};
}

void check_mark(const StreamMark& mark, const char* what) {
  if (mark.status == Status::ok) return;
  throw Error(mark.status, std::string(what) + " failed: " + std::string(status_text(mark.status)));
}

}  // namespace brant::detail
