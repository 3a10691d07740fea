#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "brant/base/api.h"
#include "brant/base/intrusive_list.h"
#include "brant/chare/chare.h"
#include "brant/chare/detail/core.h"
#include "brant/core/wait_place.h"

/// The untyped side of `when`: who waits for calls of which entry, and the calls that nobody has awaited yet.
namespace brant::detail {

/// Counts the whens that are awaited together; the last one resumes the coroutine.
struct WhenJoin {
  std::size_t remaining = 0;
  WaitPlace waiter;
};

/// One `when` that waits, mostly in the frame of the coroutine that awaits it.
struct WhenWaiter {
  ListHook<WhenWaiter> hook;
  ChareBase* chare = nullptr;
  const EntryInfo* entry = nullptr;
  /// Reads the arguments; true if they match: then the body has run, and the arguments are kept here. Throws what the
  /// body throws; what its predicate throws becomes `failure`.
  bool (*take)(WhenWaiter& self, ReadArchive arguments, const Invocation& invocation) = nullptr;
  /// "halo(5)", for the deadlock report.
  std::string (*describe)(const WhenWaiter& self) = nullptr;
  WhenJoin* join = nullptr;
  std::exception_ptr failure;  ///< It takes no call any more, and who awaits it gets this.
  std::int64_t since = 0;      ///< `coarse_now`.
};

/// Takes the first kept call that matches. False: none does. True as well if its predicate has thrown: see `failure`.
BRANT_API bool take_kept(WhenWaiter& waiter);
/// From now on `waiter` takes the next call that matches.
BRANT_API void enlist(WhenWaiter& waiter);
/// Does nothing to one that does not wait.
BRANT_API void leave(WhenWaiter& waiter) noexcept;

/// Keeps the message in which arguments are read in place.
class MessageHold {
 public:
  MessageHold() noexcept = default;
  explicit MessageHold(const Invocation& invocation) noexcept : invocation_(invocation) { retain_message(invocation); }
  MessageHold(MessageHold&& other) noexcept : invocation_(std::exchange(other.invocation_, {})) {}
  MessageHold& operator=(MessageHold&& other) noexcept {
    std::swap(invocation_, other.invocation_);
    return *this;
  }
  ~MessageHold() {
    if (invocation_.message != nullptr) drop_message(invocation_);
  }

 private:
  Invocation invocation_;
};

}  // namespace brant::detail
