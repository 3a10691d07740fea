#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "brant/brant.h"

namespace brant::bench {

/// Puts whose target is told of each arrival, and answers a window of them: the record of a channel follows each one as
/// soon as its bytes are visible. Words behind the bytes are measured by `--model told-put` (ToldPutContender).
class ToldPuts {
 public:
  /// Collective with `partner`. At most `window` puts before a `finish`. Throws Error.
  ToldPuts(Runtime& runtime, Rank partner, std::size_t window);

  /// At who puts: one of a window, which is told of when it has arrived.
  void put(RemoteSegment& there, std::uint64_t offset, ConstBuffer source, const RmaOptions& options) noexcept;
  /// Waits until the target has been told of all, and has acknowledged that. Throws Error.
  void finish();

  /// At the target: returns when it has been told of so many. Their bytes are here then. Throws Error.
  void take(std::size_t count);
  void acknowledge();

 private:
  struct Slot {
    ToldPuts* puts = nullptr;
    Op put;
    Op tell;
  };

  static void put_ended(void* slot, const OpResult& result) noexcept;
  static void tell_ended(void* slot, const OpResult& result) noexcept;
  void tell(Slot& slot, Status put) noexcept;
  void end(Status status) noexcept;
  void require(const OpResult& result, const char* what) const;

  Runtime& runtime_;
  Channel channel_;
  Window tellings_;
  std::deque<Slot> slots_;
  std::size_t used_ = 0;
  std::size_t ended_ = 0;
  Status outcome_ = Status::ok;
  std::array<std::byte, 4> token_{};
};

}  // namespace brant::bench
