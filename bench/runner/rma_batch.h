#pragma once

#include <cstddef>
#include <cstdint>

#include "brant/brant.h"

namespace brant::bench {

/// Puts into a segment of another process and gets from there, several under way at once and waited for together.
class RmaBatch {
 public:
  /// At most `window` at once. The segment stays the caller's, and may be assigned later. `spin`: waits never sleep.
  RmaBatch(Runtime& runtime, RemoteSegment& there, std::size_t window, Path path = Path::automatic, bool spin = false)
      : runtime_(runtime), there_(there), path_(path), spin_(spin), window_(window) {}

  /// Posts one that is to be waited for until `delivered`. After a failure, nothing: `finish` tells of it.
  void add(RmaDirection direction, std::uint64_t offset, Buffer local) noexcept {
    if (!window_.result().ok()) return;
    direction_ = direction;
    local_ = local;
    expected_ += local.bytes;
    const RmaOptions options{.path = path_};
    window_.add(Moment::delivered, [&](Op& op) noexcept {
      return direction == RmaDirection::put ? there_.post_put(offset, local, op, options)
                                            : there_.post_get(offset, local, op, options);
    });
  }
  /// Waits until all have ended. Throws Error naming both ranks and what was moved.
  void finish();

  /// The same error, of a transfer that was not made here.
  [[noreturn]] void fail(Status status, RmaDirection direction, Buffer local) const;

 private:
  Runtime& runtime_;
  RemoteSegment& there_;
  const Path path_;
  const bool spin_;
  Window window_;
  std::size_t expected_ = 0;  ///< Bytes that were posted since the last finish.
  RmaDirection direction_ = RmaDirection::put;
  Buffer local_;  ///< Of the last one.
};

}  // namespace brant::bench
