#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "port/memory.h"

namespace brant {

/// Waits that are queued in streams of the program (`Bell::enqueue_wait`) and have not passed. A call of the driver
/// that waits for the device does not return before them, and what they wait for may be rung by the very thread that
/// calls. Any thread.
class StreamWaits {
 public:
  explicit StreamWaits(port::Device& device) noexcept : device_(device) {}
  ~StreamWaits();
  StreamWaits(const StreamWaits&) = delete;
  StreamWaits& operator=(const StreamWaits&) = delete;

  /// Queues one, by `call(streams)`, and notes it. A wait of a graph is not noted while it is captured: it has no end
  /// to look for, and each launch of the graph waits anew. Cost: an event that is recorded.
  template <typename Call>
  Status enqueue(port::Stream* stream, Call&& call) noexcept {
    entering_.fetch_add(1);  // before it may wait: a free of another thread must not come between
    const Status status = call(*device_.streams());
    if (status == Status::ok) note(stream);
    entering_.fetch_sub(1);
    return status;
  }

  /// Some have not passed. Cost: nothing where none were queued, and a question of the driver for each stream.
  [[nodiscard]] bool any() noexcept;

 private:
  /// Streams are in order, so that the last wait of one stands for all of it.
  struct Last {
    port::Stream* stream = nullptr;
    port::Event* behind = nullptr;
  };

  void note(port::Stream* stream) noexcept;
  Result<port::Event*> event_for(port::Stream* stream) noexcept;

  port::Device& device_;
  std::atomic<int> entering_ = 0;
  std::atomic<bool> noted_ = false;  ///< lasts_ is not empty.
  std::mutex mutex_;
  std::vector<Last> lasts_;  ///< Protected by mutex_.
};

}  // namespace brant
