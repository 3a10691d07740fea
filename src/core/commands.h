#pragma once

#include <atomic>
#include <cstdint>

#include "base/mpsc_ring.h"
#include "brant/base/status.h"
#include "core/batch_time.h"
#include "core/waiter.h"

namespace brant {

/// What other threads ask the worker's thread to do.
class Commands {
 public:
  explicit Commands(Waiter& waiter) : waiter_(waiter) {}
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  /// See Worker::post. From any thread.
  Status post(void (*function)(void*) noexcept, void* context) noexcept {
    if (!ring_.push({function, context})) return Status::limit_reached;
    waiting_count_.fetch_add(1, std::memory_order_release);
    waiter_.wake();
    return Status::ok;
  }

  [[nodiscard]] bool waiting() const noexcept { return waiting_count_.load(std::memory_order_acquire) != 0; }
  /// Does some of it. Returns how many.
  unsigned run() noexcept {
    if (!waiting()) return 0;
    unsigned count = 0;
    BatchTime time;
    for (Command command; count < kDeliverLimit && !time.over(count) && ring_.pop(command); ++count) {
      waiting_count_.fetch_sub(1, std::memory_order_relaxed);
      command.function(command.context);
    }
    return count;
  }

 private:
  struct Command {
    void (*function)(void*) noexcept = nullptr;
    void* context = nullptr;
  };

  Waiter& waiter_;
  MpscRing<Command> ring_{1024};
  std::atomic<std::uint32_t> waiting_count_{0};
};

}  // namespace brant
