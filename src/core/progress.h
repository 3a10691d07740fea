#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "brant/base/clock.h"
#include "core/commands.h"
#include "core/completions.h"
#include "core/host_links.h"
#include "core/joined_peers.h"
#include "core/observe/counters.h"
#include "core/peers.h"
#include "core/pollers.h"
#include "core/progress_clock.h"
#include "core/services.h"
#include "core/silence.h"
#include "core/timer_queue.h"
#include "port/wire.h"

namespace brant {

/// What moves when the program calls progress, and in which order: links, network, pollers, commands of other threads,
/// timers, and last the sinks.
class Progress {
 public:
  /// A look at the links costs some nanoseconds, one at the network library ten times that: looks and records between.
  static constexpr unsigned kWireTurn = 8;
  /// The same while records come over the links.
  static constexpr unsigned kWireTurnMoving = 64;

  Progress(port::Wire& wire, HostLinks& links, Pollers& pollers, Commands& commands, TimerQueue& timers,
           ProgressClock& clock, Services& services, Peers& peers, JoinedPeers& joined_peers, Completions& completions,
           Silence& silence, Counters& counters) noexcept
      : wire_(wire),
        links_(links),
        pollers_(pollers),
        commands_(commands),
        timers_(timers),
        clock_(clock),
        services_(services),
        peers_(peers),
        joined_peers_(joined_peers),
        completions_(completions),
        silence_(silence),
        counters_(counters) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// See Worker::progress.
  unsigned step() noexcept;
  /// Steps, again and again as long as they see something, and no longer than `limit`.
  void step_while_moving(std::chrono::nanoseconds limit) noexcept;
  /// Moves the links, the network and what is polled, and tells nobody.
  unsigned move() noexcept;
  /// At what nobody tells this process of: the end of peers, and what services look for.
  void look_around() noexcept;

  /// The network has something to do: the next step looks at it, and not at the links alone.
  void look_at_wire() noexcept { wire_turn_ = kWireTurnMoving; }
  /// Operations that the network works on, as far as the layers above say so: while there are any, every step looks at
  /// it.
  void note_wire_op(int change) noexcept { wire_ops_ += change; }
  /// User code has run. If that may have taken long, the next step looks at the network.
  void note_user_code() noexcept {
    const std::int64_t now = coarse_now();
    if (std::exchange(user_code_ended_, now) != now) look_at_wire();
  }

 private:
  port::Wire& wire_;
  HostLinks& links_;
  Pollers& pollers_;
  Commands& commands_;
  TimerQueue& timers_;
  ProgressClock& clock_;
  Services& services_;
  Peers& peers_;
  JoinedPeers& joined_peers_;
  Completions& completions_;
  Silence& silence_;
  Counters& counters_;
  unsigned calls_since_check_ = 0;
  unsigned wire_turn_ = 0;
  std::int64_t wire_ops_ = 0;
  std::int64_t user_code_ended_ = 0;  ///< The last time, by the coarse clock.
  TimePoint next_peer_check_{};
};

}  // namespace brant
