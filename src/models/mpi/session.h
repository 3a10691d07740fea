#pragma once

#include <cstdint>
#include <utility>

#include "models/mpi/buffered_sends.h"
#include "models/mpi/error_handler.h"
#include "models/mpi/info.h"

namespace brant::mpi {

/// What a handle of a session points to. Groups and communicators that derive from it know its number, since they may
/// outlive it.
struct Session final : Object {
  static constexpr ObjectKind kKind = ObjectKind::session;

  Session(std::uint64_t number_in, ErrorHandler& handler_in) noexcept
      : Object(kKind), number(number_in), handler(&handler_in) {
    ++handler->users;
  }
  ~Session() { drop_handler(*handler); }

  void set_handler(ErrorHandler& next) noexcept {
    ++next.users;
    drop_handler(*std::exchange(handler, &next));
  }

  const std::uint64_t number;  ///< No other session of this rank has it, or had it.
  ErrorHandler* handler;
  Info info;
  BufferedSends buffered;
};

}  // namespace brant::mpi
