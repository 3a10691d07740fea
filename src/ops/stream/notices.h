#pragma once

#include <array>

#include "brant/ops/stream_channel.h"
#include "core/engine.h"
#include "core/event_pool.h"
#include "ops/stream/mailbox.h"

namespace brant {

/// Who waits on the CPU for transfers of one end: each has an event behind the kernel, and a report that it writes.
class StreamNotices {
 public:
  struct Notice final : OpOwner {
    ListHook<Notice> hook;
    port::Event* event = nullptr;
    bool used = false;
  };

  explicit StreamNotices(Engine& engine) noexcept;
  ~StreamNotices();
  StreamNotices(const StreamNotices&) = delete;
  StreamNotices& operator=(const StreamNotices&) = delete;

  [[nodiscard]] bool empty() const noexcept { return pending_.empty(); }
  /// For `on.op`. Null: nobody waits. limit_reached: all are in use.
  Result<Notice*> take(const OnStream& on) noexcept;
  /// Where the kernel reports; null for a null notice.
  [[nodiscard]] StreamControl::Report* report_of(const Notice* notice, StreamControl& control) const noexcept;
  /// The kernel was launched, or not. in_progress if somebody waits, else `status`.
  Status launched(Status status, Notice* notice, const OnStream& on) noexcept;
  /// Ends those whose kernels have. Returns how many.
  unsigned poll(const StreamControl& control) noexcept;

 private:
  Engine& engine_;
  EventPool events_;
  std::array<Notice, StreamControl::kReports> notices_;
  IntrusiveList<Notice, &Notice::hook> pending_;
};

}  // namespace brant
