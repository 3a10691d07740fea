#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "base/process_copy.h"
#include "brant/core/joining.h"
#include "brant/core/path.h"
#include "core/commands.h"
#include "core/completions.h"
#include "core/deferrals.h"
#include "core/farewell.h"
#include "core/held_messages.h"
#include "core/host_links.h"
#include "core/joined_peers.h"
#include "core/late_frees.h"
#include "core/leases.h"
#include "core/memory_kinds.h"
#include "core/observe/statistics.h"
#include "core/observe/trace.h"
#include "core/paths/path_order.h"
#include "core/peers.h"
#include "core/pollers.h"
#include "core/progress.h"
#include "core/progress_clock.h"
#include "core/services.h"
#include "core/silence.h"
#include "core/sleeping.h"
#include "core/timer_queue.h"
#include "core/waiter.h"
#include "core/waiting.h"
#include "port/adapters.h"

namespace brant {

/// The inner side of a Runtime: owns the adapters, and the parts of core, each of which does one thing and gets
/// references to those it needs. The layers above ask for a part by its name. Belongs to the worker's thread, except
/// `Commands::post`.
class Engine {
 public:
  struct Options {
    Path path = Path::automatic;  ///< Forced for every transfer that can use it.
    bool share_gpu = false;       ///< Several processes may use one GPU.
    bool sleep = true;            ///< May the worker sleep when idle?
    std::chrono::milliseconds boot_timeout{60'000};
    std::string calibration;                        ///< As find_calibration takes it.
    bool statistics = false;                        ///< Publish the counters for `brant info --jobs`.
    std::chrono::milliseconds stall_report{5'000};  ///< How long a wait is silent before it says what for; 0: for ever.
    std::chrono::milliseconds lease{10'000};        ///< How long a process of another host may be silent; 0: for ever.
    Joining joining = Joining::off;                 ///< Who may be joined after the start.
  };

  Engine(port::Adapters adapters, const Options& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Exchanges addresses with all other processes. Collective. Throws.
  void exchange();
  /// The peers want nothing of this process any more: `shut_down` does not wait for those that are late.
  void end_without_waiting() noexcept { waits_at_end_ = false; }
  /// Waits (bounded) for the peers to end too, so that nobody leaves while others still read its memory.
  void shut_down() noexcept;
  /// The first part of it: tells the peers that the program here has ended. May be repeated, for what found no room.
  void say_farewell() noexcept { farewell_.say(); }

  [[nodiscard]] port::Wire& wire() noexcept { return *adapters_.wire; }
  [[nodiscard]] port::Device& device() noexcept { return *adapters_.device; }
  [[nodiscard]] port::Boot& boot() noexcept { return *adapters_.boot; }
  [[nodiscard]] const port::JobInfo& job() const noexcept { return job_; }
  /// False in a child of fork(): nothing of the job may be touched there.
  [[nodiscard]] bool is_of_this_process() const noexcept { return copy_.is_original(); }
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] Counters& counters() noexcept { return counters_; }
  /// Which path goes first: by what this machine was measured to cost, or the built-in thresholds.
  [[nodiscard]] const PathOrder& path_order() const noexcept { return path_order_; }
  /// For measuring: from the next message on. All processes that exchange messages should do it alike.
  void set_path_order(PathOrder order) noexcept { path_order_ = std::move(order); }
  /// As calibrations name this process's machine.
  [[nodiscard]] CalibratedMachine machine() const;
  /// Null unless BRANT_TRACE is set.
  [[nodiscard]] Trace* trace() noexcept { return trace_.get(); }
  /// The service of a type, made on first use.
  template <typename T>
  T& service() {
    return services_.get<T>(*this);
  }

  [[nodiscard]] MemoryKinds& memory_kinds() noexcept { return memory_kinds_; }
  [[nodiscard]] ProgressClock& clock() noexcept { return clock_; }
  [[nodiscard]] TimerQueue& timers() noexcept { return timers_; }
  [[nodiscard]] Pollers& pollers() noexcept { return pollers_; }
  [[nodiscard]] Deferrals& deferrals() noexcept { return deferrals_; }
  [[nodiscard]] StreamWaits& stream_waits() noexcept { return stream_waits_; }
  [[nodiscard]] LateFrees& late_frees() noexcept { return late_frees_; }
  [[nodiscard]] Commands& commands() noexcept { return commands_; }
  [[nodiscard]] HeldMessages& held_messages() noexcept { return held_messages_; }
  [[nodiscard]] HostLinks& links() noexcept { return links_; }
  [[nodiscard]] Completions& completions() noexcept { return completions_; }
  [[nodiscard]] Peers& peers() noexcept { return peers_; }
  [[nodiscard]] JoinedPeers& joined_peers() noexcept { return joined_peers_; }
  [[nodiscard]] Silence& silence() noexcept { return silence_; }
  [[nodiscard]] Progress& progress() noexcept { return progress_; }
  [[nodiscard]] Sleeping& sleeping() noexcept { return sleeping_; }
  [[nodiscard]] Waiting& waiting() noexcept { return waiting_; }
  /// See Worker::fd.
  [[nodiscard]] int event_fd() const noexcept { return waiter_.fd(); }

 private:
  void add_alarms();
  void require_start(Status status, const char* failed);

  const ProcessCopy copy_;
  std::unique_ptr<Statistics> statistics_;  ///< Outlives whatever may still count.
  Counters& counters_;                      ///< Of `statistics_`.
  port::Adapters adapters_;
  const port::JobInfo& job_ = adapters_.boot->job();  ///< For every message, without a virtual call.
  const Options options_;
  bool waits_at_end_ = true;
  PathOrder path_order_;
  std::unique_ptr<Trace> trace_;
  MemoryKinds memory_kinds_;
  Waiter waiter_;
  ProgressClock clock_;
  TimerQueue timers_;
  Pollers pollers_;
  StreamWaits stream_waits_{device()};
  Deferrals deferrals_{clock_, &stream_waits_};
  LateFrees late_frees_{device(), deferrals_};
  Commands commands_{waiter_};
  HeldMessages held_messages_;
  HostLinks links_{adapters_.links.get()};
  Completions completions_{counters_};
  Leases leases_;
  Peers peers_;
  Services services_;
  Farewell farewell_;
  JoinedPeers joined_peers_;
  Silence silence_;
  Progress progress_;
  Sleeping sleeping_;
  Waiting waiting_;
};

}  // namespace brant
