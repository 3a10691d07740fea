#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mpsc_ring.h"
#include "base/process_copy.h"
#include "brant/base/clock.h"
#include "brant/base/ids.h"
#include "brant/base/intrusive_list.h"
#include "brant/core/joining.h"
#include "brant/core/op.h"
#include "brant/core/path.h"
#include "core/deferred_work.h"
#include "core/failure_detector.h"
#include "core/farewell.h"
#include "core/lease_thread.h"
#include "core/observe/statistics.h"
#include "core/observe/trace.h"
#include "core/paths/path_order.h"
#include "core/peer_record.h"
#include "core/timer_queue.h"
#include "core/waiter.h"
#include "port/adapters.h"
#include "port/memory/allocation_map.h"

namespace brant {

/// A record of something under way with a peer. When the peer dies, `lost` is called once, after the record left the
/// list.
class PeerOp {
 public:
  ListHook<PeerOp> peer_hook;
  void (*lost)(PeerOp& self) noexcept = nullptr;
};

/// Another process of the job, this one, or one that has joined.
struct Peer {
  Rank rank;
  PeerRecord record;
  std::int32_t rank_there = -1;            ///< By which it knows this process: whom messages to it say they are from.
  std::int32_t rank_in_its_job = -1;       ///< `rank`, but of one that has joined.
  bool joined = false;                     ///< After the start: it has no part in what the job does together.
  port::WireEndpoint* endpoint = nullptr;  ///< Null until the first use.
  port::Link* link = nullptr;              ///< From the first use on; null if the two share no memory.
  bool same_host = false;
  bool same_process = false;
  bool lost = false;
  bool suspected = false;
  bool distrusted = false;           ///< It wrote what no process of this job writes, and that was said.
  bool ended = false;                ///< It has said farewell: its program takes and sends nothing new any more.
  std::uint32_t farewell_words = 0;  ///< Then: how many words of its services belong to that.
  IntrusiveList<PeerOp, &PeerOp::peer_hook> outstanding;
};

/// What a layer keeps for each operation it works on; the way back from an `Op`.
class OpOwner {
 public:
  OpOwner() = default;
  OpOwner(const OpOwner&) = delete;
  OpOwner& operator=(const OpOwner&) = delete;

  /// Withdraws the operation if that is possible; the outcome comes as a completion.
  void (*cancel)(OpOwner& self) noexcept = nullptr;

  void own(Engine& engine, Op& op) noexcept;
  /// Works on the operation of another record from now on, which lets it go.
  void take_over(OpOwner& other) noexcept {
    op_ = std::exchange(other.op_, nullptr);
    if (op_ != nullptr) op_->owner_ = this;
  }
  /// False once the caller took its record back (`Op::detach`): its buffers may be gone.
  [[nodiscard]] bool observed() const noexcept { return op_ != nullptr; }

 private:
  friend class Engine;
  Op* op_ = nullptr;  ///< Null once detached or fully reported.
};

/// For a post that was handed a record which is pending: says so in the log, and leaves the record alone.
Status refuse_pending_op() noexcept;

/// Something to be looked at in every progress call while it is attached: device events, rings in shared memory,
/// doorbells.
class Poller {
 public:
  ListHook<Poller> poller_hook;
  /// Returns the number of events seen.
  virtual unsigned poll() noexcept = 0;
  /// True: there is nothing to see now, and what it waits for, which may never come, wakes the process by other means.
  [[nodiscard]] virtual bool lets_sleep() const noexcept { return false; }

 protected:
  ~Poller() = default;
};

/// State of a layer above, one per engine and kind, created on first use. They are destroyed before the adapters, in
/// the order in which they were made: one that uses another makes it first, and the other's last records may then lie
/// in what it owns.
class Service {
 public:
  virtual ~Service() = default;

  /// The program of this process has ended: says to a peer what it must know to end what it waits for. Returns how many
  /// words that took, since they and the farewell may overtake each other.
  virtual unsigned part_from(Peer&) noexcept { return 0; }
  /// The same of a peer's program, `Peer::ended`; its words may still be on their way.
  virtual void peer_ended(Peer&) noexcept {}
  /// Nothing has happened for so long, in a wait which may or may not end by itself: says what for. False: this layer
  /// waits for nothing, and has said nothing.
  virtual bool stalled(std::chrono::nanoseconds, bool /*for_ever*/) noexcept { return false; }
  /// Every few milliseconds of progress, and after each sleep: for what nobody tells this process of.
  virtual void look_around() noexcept {}
  /// A joined peer is gone (`Peer::lost`), and its record is to go: drops what was kept of it, and is asked again as
  /// long as it says false, which is while the program has something open with that peer.
  virtual bool forget(Peer&) noexcept { return true; }
};

class JoinedPeers;
/// `JoinedPeers::find`, for the engine.
Peer* find_joined(JoinedPeers& joined, std::int32_t rank) noexcept;

/// The inner side of a Runtime: adapters, peers, and the progress of one worker. Belongs to the worker's thread, except
/// `post`.
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

  static constexpr unsigned kAmIds = 64;
  static constexpr std::size_t kHeldMessagesMax = 4096;
  /// A look at the links costs some nanoseconds, one at the network library ten times that: looks and records between.
  static constexpr unsigned kWireTurn = 8;
  /// The same while records come over the links.
  static constexpr unsigned kWireTurnMoving = 64;

  Engine(port::Adapters adapters, const Options& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Exchanges addresses with all other processes. Collective. Throws.
  void exchange();
  /// Waits (bounded) for the peers to end too, so that nobody leaves while others still read its memory.
  void shut_down() noexcept;

  [[nodiscard]] port::Wire& wire() noexcept { return *adapters_.wire; }
  [[nodiscard]] port::Device& device() noexcept { return *adapters_.device; }
  [[nodiscard]] port::Boot& boot() noexcept { return *adapters_.boot; }
  [[nodiscard]] const port::JobInfo& job() const noexcept { return job_; }
  /// False in a child of fork(): nothing of the job may be touched there.
  [[nodiscard]] bool is_of_this_process() const noexcept { return copy_.is_original(); }
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] Counters& counters() noexcept { return counters_; }
  /// Of an operation or a message. Back-pressure and what was cancelled are no failures.
  void count_outcome(Status status) noexcept {
    if (status == Status::ok || status == Status::canceled || status == Status::limit_reached) return;
    counters_.failures.add();
  }
  /// Which path goes first: by what this machine was measured to cost, or the built-in thresholds.
  [[nodiscard]] const PathOrder& path_order() const noexcept { return path_order_; }
  /// For measuring: from the next message on. All processes that exchange messages should do it alike.
  void set_path_order(PathOrder order) noexcept { path_order_ = std::move(order); }
  /// As calibrations name this process's machine.
  [[nodiscard]] CalibratedMachine machine() const;
  /// Null unless BRANT_TRACE is set.
  [[nodiscard]] Trace* trace() noexcept { return trace_.get(); }

  /// Connects on first use. Throws invalid_argument for a rank outside the job, peer_lost if the process is gone.
  Peer& peer(Rank rank);
  /// In another process: one can wait for it. Tests run several ranks in one thread.
  [[nodiscard]] bool runs_elsewhere(const Peer& peer) const noexcept;
  /// Kind of device memory that this process and a peer can map of each other; detect: none.
  [[nodiscard]] MemoryKind mutual_kind(const Peer& peer) const noexcept;
  /// The peer that a link record came from. Does not connect.
  Peer& linked_peer(int rank) noexcept;
  void add_outstanding(Peer& peer, PeerOp& op) noexcept { peer.outstanding.push_back(op); }
  /// Operations that the network works on, as far as the layers above say so: while there are any, every progress looks
  /// at it, and not at the links alone.
  void note_wire_op(int change) noexcept { wire_ops_ += change; }
  /// User code has run. If that may have taken long, the next progress looks at the network, and not at the links
  /// alone.
  void note_user_code() noexcept {
    const std::int64_t now = coarse_now();
    if (std::exchange(user_code_ended_, now) != now) wire_turn_ = kWireTurnMoving;
  }
  /// What just arrived, in progress, concerns nobody but brant itself: it ends no silence (see Service::stalled).
  void note_upkeep() noexcept { upkeep_ = true; }
  /// Something was done for the program outside progress.
  void break_silence() noexcept { silent_since_ = TimePoint{}; }
  /// The network failed towards this peer: it is given up in the next progress, as if its process had died.
  void suspect(Peer& peer) noexcept {
    peer.suspected = true;
    suspects_ = true;
  }
  /// The peer that a message says it is from. Null for a rank that the job does not have, and of one that has left.
  /// Does not connect.
  [[nodiscard]] Peer* find_peer(std::int32_t rank) noexcept {
    const auto place = static_cast<std::size_t>(rank);
    return rank >= 0 && place < peers_.size() ? &peers_[place] : find_joined(*joined_, rank);
  }
  /// A peer wrote `what`, which no process of this job writes: that is counted, said once for each peer, and the peer
  /// is given up in the next progress. What the record was about is not done.
  void distrust(Peer& peer, const char* what) noexcept;
  /// The same of a message that names its sender by itself: one that the job does not have is not given up.
  void distrust(std::int32_t rank, const char* what) noexcept;
  void remove_outstanding(Peer& peer, PeerOp& op) noexcept {
    if (IntrusiveList<PeerOp, &PeerOp::peer_hook>::linked(op)) peer.outstanding.remove(op);
  }

  /// Reports a moment of an operation: its sink is fired from `progress`, after the network engine has run.
  void report(OpOwner& owner, Moment moment, const OpResult& result) noexcept;
  /// Reports every wanted moment that was not reported yet, and lets the operation go.
  void finish(OpOwner& owner, const OpResult& result) noexcept;
  /// The same for an operation that no layer owns, and which is not pending: for what ended where no sink may be fired.
  void complete(Op& op, const OpResult& result) noexcept;
  void detach(Op& op) noexcept;

  /// Takes over active messages of this id; those that came before are handed over now. The handler sees complete
  /// headers; payloads of held messages are refused above `am_eager_bytes_max`.
  void claim_am(unsigned id, port::AmHandler handler, void* context);

  /// Other processes of this host may have a link with this one.
  [[nodiscard]] bool shares_memory() const noexcept { return adapters_.links != nullptr; }

  /// Runs the handler of what has come over links for a service, also before it was claimed. Not within progress.
  void look_at_links(unsigned service) noexcept;
  /// Takes over the link records of this service. Nothing happens where no memory is shared.
  void claim_link(unsigned service, port::LinkHandler handler, void* context) noexcept {
    if (adapters_.links) adapters_.links->set_handler(service, handler, context);
  }

  /// Both may be repeated, and called from `Poller::poll`, for any poller.
  void attach(Poller& poller) noexcept {
    if (!PollerList::linked(poller)) pollers_.push_back(poller);
  }
  void detach(Poller& poller) noexcept {
    if (!PollerList::linked(poller)) return;
    if (next_poller_ == &poller) next_poller_ = PollerList::next(poller);
    pollers_.remove(poller);
  }
  [[nodiscard]] TimerQueue& timers() noexcept { return timers_; }

  /// See DeferredWork. All of these may be repeated.
  void defer(DeferredWork& work) noexcept;
  void take_back(DeferredWork& work) noexcept {
    if (DeferredList::linked(work)) deferred_.remove(work);
  }
  /// So many kernels more may run from now on, or fewer, that end only once the CPU of some process has done something:
  /// until they are gone, nobody waits for the device unasked.
  void note_waiting_kernels(int change) noexcept { waiting_kernels_ += change; }
  /// Does what was deferred. Not within progress; the caller knows that no kernel waits for this process.
  void run_deferred() noexcept;
  /// The same if no kernel is known that does.
  void run_deferred_if_safe() noexcept {
    if (!deferred_.empty() && waiting_kernels_ == 0) run_deferred();
  }

  /// The service of a type, made by `Make()` on first use.
  template <typename T>
  T& service() {
    static const char key = 0;
    for (auto& [known, service] : services_) {
      if (known == &key) return static_cast<T&>(*service);
    }
    services_.emplace_back(&key, std::make_unique<T>(*this));
    return static_cast<T&>(*services_.back().second);
  }

  /// A timer or something polled is pending, or news that nobody was told yet: this process goes on by itself. Of
  /// operations that wait only the layers that work on them know what for.
  [[nodiscard]] bool goes_on() const noexcept {
    return !timers_.empty() || must_poll() || !ready_.empty() || commands_waiting_.load(std::memory_order_relaxed) != 0;
  }
  [[nodiscard]] std::size_t pending_ops() const noexcept { return pending_ops_; }
  /// The program stands in a wait without a deadline.
  [[nodiscard]] bool waits_for_ever() const noexcept { return waits_for_ever_; }
  /// Completions that were not told yet.
  [[nodiscard]] bool completions_due() const noexcept { return !ready_.empty(); }
  /// The time when progress last looked at the clock: costs nothing, and is some milliseconds old at most.
  [[nodiscard]] TimePoint recently() const noexcept { return recently_; }

  /// Kind of the memory behind a pointer that was not declared, and a check of what was declared: device memory is
  /// looked up (see `Device::query`), and no range is null, wraps, or reaches past the end of what this process's
  /// device allocated, host memory included. Of other host memory nobody knows the end. Where the device was asked,
  /// `buffer_id` gets the id of the allocation (see port::PointerInfo): a question costs some hundred nanoseconds, and
  /// who needs both asks once.
  Status resolve_kind(const void* data, std::size_t bytes, MemoryKind& kind,
                      std::uint64_t* buffer_id = nullptr) noexcept {
    const bool checked = kind == MemoryKind::host && host_allocations_ != nullptr &&
                         host_range_.version == host_allocations_->version() && host_range_.covers(data, bytes);
    return checked && bytes != 0 ? Status::ok : find_kind(data, bytes, kind, buffer_id);
  }

  unsigned progress() noexcept;
  /// Progress, again and again as long as it sees something, and no longer than `limit`.
  void progress_while_moving(std::chrono::nanoseconds limit) noexcept;
  /// Moves the links, the network and what is polled until `done` holds, and tells nobody: for a layer that has to wait
  /// inside a call, which a sink may have made. False: the time was over first.
  bool wait_quietly(bool (*done)(void*) noexcept, void* context, std::chrono::nanoseconds timeout) noexcept;
  Status wait(bool (*done)(void*) noexcept, void* context, std::chrono::nanoseconds timeout) noexcept;
  /// See Worker::arm and Worker::fd.
  std::chrono::nanoseconds arm() noexcept;
  [[nodiscard]] int event_fd() const noexcept { return waiter_.fd(); }
  Status post(void (*function)(void*) noexcept, void* context) noexcept;

 private:
  friend class OpOwner;
  friend class Farewell;
  friend class JoinedPeers;
  using PollerList = IntrusiveList<Poller, &Poller::poller_hook>;
  using OpList = IntrusiveList<Op, &Op::engine_hook_>;
  using DeferredList = IntrusiveList<DeferredWork, &DeferredWork::deferred_hook>;
  struct Command {
    void (*function)(void*) noexcept = nullptr;
    void* context = nullptr;
  };
  struct HeldMessage {
    unsigned id;
    std::vector<std::byte> header;
    std::vector<std::byte> data;
  };
  struct AmSlot {
    Engine* engine = nullptr;
    unsigned id = 0;
  };

  void put_at_boot(const char* key, std::span<const std::byte> value);
  void open_lease();
  void start_lease();
  void attach_links() noexcept;
  static void hold_message(void* slot, port::AmMessage& message) noexcept;
  static void on_endpoint_failed(void* engine, port::WireEndpoint* endpoint) noexcept;
  [[nodiscard]] bool watched_by_kernel(const Peer& peer) const noexcept;
  void check_peers() noexcept;
  void look_around() noexcept;
  void hear_verdicts() noexcept;
  void lose(Peer& peer) noexcept;
  static bool make_due(Op& op) noexcept;
  unsigned poll_pollers() noexcept;
  unsigned fire_ready(unsigned limit) noexcept;
  void release_ops(OpList& ops) noexcept;
  unsigned run_commands() noexcept;
  unsigned move() noexcept;
  bool may_sleep() noexcept;
  [[nodiscard]] std::chrono::milliseconds longest_sleep() noexcept;
  [[nodiscard]] bool must_poll() const noexcept;
  Status find_kind(const void* data, std::size_t bytes, MemoryKind& kind, std::uint64_t* buffer_id) noexcept;
  Status check_host(const void* data, std::size_t bytes) noexcept;
  Status wait_until_done(bool (*done)(void*) noexcept, void* context, TimePoint deadline) noexcept;
  void note_idle(unsigned idle) noexcept;
  void begin_silence() noexcept;
  void report_stall(bool for_ever) noexcept;
  void report_stopped() const noexcept;
  [[nodiscard]] std::string ended_before(const Peer& peer) const;
  [[nodiscard]] std::string why_not_connected(const Peer& peer, Status status, bool dying) const;

  const ProcessCopy copy_;
  std::unique_ptr<Statistics> statistics_;  ///< Outlives whatever may still count.
  Counters& counters_;                      ///< Of `statistics_`.
  port::Adapters adapters_;
  const port::JobInfo& job_ = adapters_.boot->job();  ///< For every message, without a virtual call.
  const Options options_;
  PathOrder path_order_;
  std::unique_ptr<Trace> trace_;
  const port::memory::AllocationMap* const host_allocations_;  ///< See Device::host_allocations.
  port::memory::AllocationMap::Range host_range_;              ///< Around the host memory that was looked up last.
  std::deque<Peer> peers_;                                     // a deque: records stay in place
  std::unique_ptr<JoinedPeers> joined_;
  FailureDetector detector_;
  std::unique_ptr<LeaseThread> lease_;  ///< Null in a job of one host.
  Waiter waiter_;
  TimerQueue timers_;
  OpList ready_;    ///< A moment of each is due.
  OpList pending_;  ///< The other operations of users that have not ended.
  DeferredList deferred_;
  TimePoint deferred_since_{};  ///< The first of them.
  int waiting_kernels_ = 0;
  PollerList pollers_;
  Poller* next_poller_ = nullptr;  ///< In this round.
  std::size_t pending_ops_ = 0;    ///< Owned by a layer.
  MpscRing<Command> commands_{1024};
  std::atomic<std::uint32_t> commands_waiting_{0};
  std::array<AmSlot, kAmIds> am_slots_;
  std::vector<HeldMessage> held_;
  std::vector<std::pair<const char*, std::unique_ptr<Service>>> services_;
  std::optional<Farewell> farewell_;
  unsigned spin_limit_;
  unsigned calls_since_check_ = 0;
  unsigned wire_turn_ = 0;
  std::int64_t wire_ops_ = 0;
  std::int64_t user_code_ended_ = 0;  ///< The last time, by the coarse clock.
  TimePoint next_peer_check_{};
  TimePoint recently_ = Clock::now();
  bool suspects_ = false;
  bool nameless_told_ = false;  ///< Of bad records from ranks that the job does not have.
  TimePoint idle_since_{};      ///< Only with a trace.
  std::chrono::nanoseconds stall_patience_;
  TimePoint silent_since_{};    ///< Timers do not count, nor upkeep. None: something has just happened.
  TimePoint stall_reported_{};  ///< Since when the silence lasts that was reported last.
  TimePoint gave_up_at_{};      ///< When the last wait ended, if its time was over.
  bool upkeep_ = false;         ///< Something of that kind came in this progress.
  bool waits_for_ever_ = false;
};

inline void OpOwner::own(Engine& engine, Op& op) noexcept {
  op_ = &op;
  op.engine_ = &engine;
  op.owner_ = this;
  op.due_ = 0;
  engine.pending_.push_back(op);
  ++engine.pending_ops_;
}

}  // namespace brant
