#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "brant/base/api.h"
#include "brant/base/ids.h"

namespace brant {

class Engine;
class Runtime;

/// With whom a process may be joined after its start (Runtime::address, Runtime::join): it decides what the network and
/// the shared memory are opened for. Both processes need it.
enum class Joining : std::uint8_t {
  off,          ///< With nobody.
  if_possible,  ///< As this_host; a single process that finds no network library is started all the same, as with off.
  this_host,    ///< With processes of this host.
  network,      ///< With processes of other hosts too: the network listens on its interfaces.
};

/// Runtime::join and Runtime::leave in steps, for event loops that may not wait inside a call: begin, make progress
/// until it is decided or takes too long, end. A value, good as long as its Runtime; the worker's thread.
class BRANT_API JoinSteps {
 public:
  explicit JoinSteps(Runtime& runtime) noexcept;

  /// Asks. Gives the rank that the process will have; use it for nothing else before `end_join`. Throws what
  /// Runtime::join throws, but for what only the answer says.
  [[nodiscard]] Rank begin_join(std::string_view address);
  [[nodiscard]] bool is_join_decided(Rank rank) noexcept;
  /// Once for each begin. Throws peer_lost, and timed_out if it is not decided: the rank is nobody's then. `waited` is
  /// for the text.
  void end_join(Rank rank, std::chrono::nanoseconds waited);

  /// Somebody has joined whom Runtime::accept gives at once.
  [[nodiscard]] bool has_accepted() noexcept;

  /// Says farewell. False: it has left or died already, and nothing follows. Throws invalid_argument for a rank of the
  /// job.
  [[nodiscard]] bool begin_leave(Rank rank);
  [[nodiscard]] bool is_leave_decided(Rank rank) noexcept;
  /// Leaves, also if the other process has not heard of it.
  void end_leave(Rank rank, std::chrono::nanoseconds waited) noexcept;

 private:
  Engine* engine_;
};

}  // namespace brant
