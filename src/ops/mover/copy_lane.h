#pragma once

#include <cstddef>
#include <cstdint>

#include "brant/base/intrusive_list.h"
#include "brant/core/path.h"
#include "core/event_pool.h"

namespace brant {

/// How the receiver hears of a copy from the device itself: a word in memory that it has mapped for the device, set
/// behind the bytes. None: whoever owns the copy tells it by a record, once the copy has ended.
struct CopySignal {
  std::uint64_t* flag = nullptr;  ///< Null: none.
  std::uint32_t value = 0;
};

/// A copy by the device that somebody waits for.
struct DeviceCopy {
  ListHook<DeviceCopy> hook;
  port::Event* event = nullptr;
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
  // A signal in parts, so that the small members fill its last word.
  std::uint64_t* flag = nullptr;  ///< Wanted; once it is done, null unless it was set.
  std::uint32_t flag_value = 0;
  Path path = Path::automatic;  ///< What is to carry it; once it is done, what did.
  bool alone = false;           ///< Not by a kernel: an end is host memory, which kernels may not reach.
  bool broken = false;          ///< The device refused some of its parts: it fails once the others are done.
  bool no_memory = false;       ///< That is why.

  void want(const CopySignal& signal) noexcept {
    flag = signal.flag;
    flag_value = signal.value;
  }
};
/// Whom lanes and the copier tell that a copy is done, from progress.
struct CopyEnd {
  void operator()(DeviceCopy& copy, Status status) const noexcept { call(context, copy, status); }

  void (*call)(void* context, DeviceCopy& copy, Status status) noexcept;
  void* context;
};
using DeviceCopies = IntrusiveList<DeviceCopy, &DeviceCopy::hook>;

/// Copies that the device refused, until progress tells of them.
class FailedCopies {
 public:
  [[nodiscard]] bool empty() const noexcept { return copies_.empty(); }
  /// Takes over what is left in a batch that was to be closed.
  void take(DeviceCopies& batch, Status status) noexcept {
    if (status != Status::ok) failure_ = status;
    while (DeviceCopy* copy = batch.pop_front()) copies_.push_back(*copy);
  }
  /// Returns how many.
  unsigned tell(const CopyEnd& done) noexcept {
    unsigned ended = 0;
    for (; DeviceCopy* copy = copies_.pop_front(); ++ended) done(*copy, failure_);
    return ended;
  }

 private:
  DeviceCopies copies_;
  Status failure_ = Status::ok;  ///< The latest.
};

/// A stream and the copies on it, in order, in batches with one event behind each. They pass the kernels of users,
/// which may fill the device for long. When it goes it waits for them, and tells nobody. `device` and `events` outlive
/// it.
class CopyLane {
 public:
  CopyLane(port::Device& device, EventPool& events, CopyEnd done) noexcept
      : device_(device), events_(events), done_(done) {}
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;
  ~CopyLane();

  /// Made on first use; the device must have streams.
  Result<port::Stream*> stream() noexcept;
  /// The work of `batch` was put on the stream: puts an event behind it and takes the copies over. On failure it waits
  /// for the work, so that no buffer is touched any more, and the copies stay in `batch`.
  Status close(DeviceCopies& batch) noexcept;
  [[nodiscard]] bool empty() const noexcept { return copies_.empty(); }
  /// Tells those that are done. Returns how many.
  unsigned poll() noexcept;

 private:
  port::Device& device_;
  EventPool& events_;
  const CopyEnd done_;
  port::Stream* stream_ = nullptr;
  DeviceCopies copies_;
};

}  // namespace brant
