#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "brant/base/api.h"

namespace brant {

/// The outcome of a call or of an operation. Data calls return it, completions carry it.
///
/// The groups say who can cure the fault: the caller (1xx), the peer (2xx), this machine (3xx), brant itself (9xx).
enum class [[nodiscard]] Status : std::int32_t {
  ok = 0,
  in_progress = 1,

  invalid_argument = 100,  ///< An argument is outside what the call accepts.
  wrong_kind = 101,        ///< The memory is not of the kind it was declared to be.
  truncated = 102,         ///< The message is longer than the receive buffer.
  limit_reached = 103,     ///< A documented bound is exhausted; progress and try again.
  not_supported = 104,     ///< The adapter or the machine cannot do this; `capabilities()` says so beforehand.
  not_found = 105,         ///< A name, key or file does not exist.

  peer_lost = 200,         ///< The peer process died or became unreachable.
  peer_rejected = 201,     ///< The peer refused the operation.
  version_mismatch = 202,  ///< The peer runs versions that cannot talk to ours.

  no_memory = 300,      ///< Host or device memory is exhausted.
  device_failed = 301,  ///< The GPU or its driver reported an error.
  canceled = 302,       ///< The operation was cancelled before it matched.
  timed_out = 303,      ///< The deadline passed first.
  shutting_down = 304,  ///< The runtime is closing.
  io_error = 305,       ///< The operating system refused; the log has errno.

  internal = 900,  ///< A fault of brant: please report it.
};

/// The name of a status as it is written in code, for example "peer_lost".
BRANT_API std::string_view status_name(Status status) noexcept;

/// One sentence on what a status means, for people.
BRANT_API std::string_view status_text(Status status) noexcept;

/// Thrown by control calls (open, create, connect). The text names the object, the cause and the cure.
class BRANT_API Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& what) : std::runtime_error(what), status_(status) {}
  [[nodiscard]] Status status() const noexcept { return status_; }

 private:
  Status status_;
};

/// Throws an Error that says what was attempted and what became of it: "no token came: the peer process has ended, died
/// or become unreachable (peer_lost)".
BRANT_API [[noreturn]] void throw_error(Status status, std::string_view what);

}  // namespace brant
