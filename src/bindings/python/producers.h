#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "brant/base/clock.h"
#include "brant/base/status.h"
#include "brant/core/stream.h"
#include "brant/core/stream_done.h"

namespace brant::python {

class Awaitable;

/// The streams on which the arrays of one operation are still computed, or read: the operation touches its arrays when
/// all of them have come to where they were when it was called. Nobody is blocked meanwhile: progress looks at an event
/// of each. Costs nothing where all streams are idle. Worker's thread.
class Producers {
 public:
  Producers() noexcept = default;
  Producers(const Producers&) = delete;
  Producers& operator=(const Producers&) = delete;
  ~Producers() { drop(); }

  /// What is queued there so far comes first. Throws what the stream failed with.
  void add(const Stream& stream);
  /// None of them has anything to do.
  [[nodiscard]] bool are_idle() const noexcept { return streams_.empty(); }
  /// From here on, once: `owner` goes on (`Process::ended`) when all have come there. Throws what `stream_done` does.
  void start(Awaitable& owner);
  /// Some have not come there.
  [[nodiscard]] bool are_busy() const noexcept { return busy_ != 0; }
  /// What became of their work: ok, or what the first of them that failed reports.
  [[nodiscard]] Status status() const noexcept { return failed_; }
  /// Blocks until none of them has anything to do, or `deadline` has come; false then. Tells `owner` nothing more.
  [[nodiscard]] bool finish_by(TimePoint deadline) noexcept;
  /// Nobody waits for them any more.
  void drop() noexcept;

 private:
  std::vector<StreamHandle> streams_;  ///< Those that were busy when they were added; each once.
  std::unique_ptr<detail::StreamMark[]> marks_;
  std::size_t busy_ = 0;
  Awaitable* owner_ = nullptr;
  Status failed_ = Status::ok;
};

/// Blocks, without the GIL, until all that is queued there is done. Throws what it failed with.
void wait_for(Stream& stream);

}  // namespace brant::python
