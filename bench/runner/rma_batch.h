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
  void add(RmaDirection direction, std::uint64_t offset, const Buffer& local) noexcept {
    const RmaOptions options{.path = path_};
    const bool puts = direction == RmaDirection::put;
    post(puts ? "put" : "get", local, [&](Op& op) noexcept {
      return puts ? there_.post_put(offset, {local.data, local.bytes, local.kind}, op, options)
                  : there_.post_get(offset, local, op, options);
    });
  }
  /// The same of an atomic. `before` stays in place until it has ended.
  void add_atomic(std::uint64_t offset, const Atomic& what, std::uint64_t& before) noexcept {
    post("fetch-add", Buffer(&before, what.bytes(), MemoryKind::host),
         [&](Op& op) noexcept { return there_.post_atomic(offset, what, op, &before, path_); });
  }
  /// Waits until all have ended. Throws Error naming both ranks and what was moved.
  void finish();

  /// The same error, of a transfer that was not made here.
  [[noreturn]] void fail(Status status, const char* what, Buffer local) const;

 private:
  template <typename Post>
  void post(const char* what, const Buffer& local, Post&& post) noexcept {
    if (!window_.result().ok()) return;
    what_ = what;
    local_ = local;
    expected_ += local.bytes;
    window_.add(Moment::delivered, post);
  }

  Runtime& runtime_;
  RemoteSegment& there_;
  const Path path_;
  const bool spin_;
  Window window_;
  std::size_t expected_ = 0;  ///< Bytes that were posted since the last finish.
  const char* what_ = "";
  Buffer local_;  ///< Of the last one.
};

}  // namespace brant::bench
