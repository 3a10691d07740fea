#include "models/mpi/process.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/env.h"
#include "base/log.h"
#include "base/place.h"
#include "models/mpi/call_turns.h"
#include "models/mpi/calls.h"
#include "models/mpi/checks/checks.h"
#include "models/mpi/communicators.h"
#include "models/mpi/dynamic/connections.h"
#include "models/mpi/dynamic/meeting.h"
#include "models/mpi/dynamic/spawning.h"
#include "models/mpi/enqueue/enqueue_thread.h"
#include "models/mpi/parting.h"
#include "models/mpi/rank_life.h"
#include "models/mpi/stall_report.h"
#include "models/mpi/tools/performance_variables.h"
#include "models/mpi/windows/window.h"
#include "models/mpi/windows/window_messenger.h"

namespace brant::mpi {

namespace {

RankThreads* g_threads = nullptr;
bool g_exits = false;  ///< The functions given to atexit run.
int g_exit_code = 0;   ///< With which the process ends then.
constexpr std::int64_t kRanksMax = 1 << 20;

/// How many ranks the job has, which `brant run --ranks` says where there are several in a process.
RankPlacement placement_of(const Runtime& runtime, const RankThreads* threads) {
  RankPlacement placement{.ranks = runtime.size(), .processes = runtime.size()};
  if (threads == nullptr) {
    if (const std::string_view wish = env("BRANT_MPI_RANKS"); !wish.empty() && runtime.rank().value == 0) {
      log::warn(
          "BRANT_MPI_RANKS={} changes nothing, for this program was not started with several ranks in a process: "
          "start it by `brant run -n {} --ranks {} -- PROGRAM`, or put `brant-ranks --` before PROGRAM",
          wish, placement.processes, wish);
    }
    return placement;
  }
  placement.ranks =
      static_cast<int>(env_int_in("BRANT_MPI_RANKS", placement.ranks, {placement.processes, kRanksMax, "ranks"}));
  const int here = placement.count_in(runtime.rank().value);
  if (here == threads->count()) return placement;
  throw Error(
      Status::invalid_argument,
      fmt::format("{} ranks of the program run in this process, and {} of {} ranks in {} processes belong here: "
                  "start the program by `brant run -n {} --ranks {}`",
                  threads->count(), here, placement.ranks, placement.processes, placement.processes, placement.ranks));
}

/// The end of a session waits for nobody who receives, so the process does. One that may still call MPI goes without a
/// word, so that the others hear of its end.
void end_unused_process() noexcept {
  if (detail::the_process == nullptr || detail::the_process->is_open() || !detail::the_process->is_own()) return;
  if (EnqueueThread* const thread = EnqueueThread::existing()) thread->stop();
  detail::the_process->part();
  delete detail::the_process;
  detail::the_process = nullptr;
}

/// With the code that the process ends with.
void end_at_exit(int code, void*) noexcept {
  g_exits = true;
  g_exit_code = code;
  end_unused_process();
}

/// Destructors of the program that run behind `end_at_exit` may end what it found open.
void end_if_late() noexcept {
  if (g_exits) end_unused_process();
}

/// Behind those destructors, since it was made before what the program made: a process whose program has not ended what
/// it has of MPI fails, so that launchers notice. `exit` goes on where it is, with another code, when called again.
struct LastLook {
  ~LastLook() {
    if (!g_exits || g_threads != nullptr || detail::the_process == nullptr || !detail::the_process->is_own()) return;
    if (const int code = checked_exit_code(g_exit_code); code != g_exit_code) std::exit(code);
  }
};
const LastLook g_last_look;

/// By the ranks of this process.
std::vector<RankLife>& rank_lives() {
  static auto* const lives =
      new std::vector<RankLife>(g_threads != nullptr ? static_cast<std::size_t>(g_threads->count()) : 1);
  return *lives;
}

RankState& made_rank(int thread_level) {
  if (detail::the_process == nullptr) {
    detail::the_process = new Process(g_threads);
    settle_turns(thread_level == MPI_THREAD_MULTIPLE);
    if (detail::the_turns != nullptr) detail::the_turns->attach(&detail::the_process->engine());
    // After the runtime is there, so that it ends before what its libraries have given to atexit.
    static const int outcome = g_threads != nullptr ? std::atexit(end_unused_process) : ::on_exit(end_at_exit, nullptr);
    static_cast<void>(outcome);
  }
  return detail::the_process->rank();
}

}  // namespace

RankPlacement Process::g_placement;

namespace {

/// The standard lets every program connect with others, so all can be joined unless BRANT_JOIN says otherwise.
RuntimeOptions options_of_mpi(bool several_ranks) {
  RuntimeOptions options = RuntimeOptions::from_environment();
  if (env("BRANT_JOIN").empty() && !several_ranks) options.joining = Joining::if_possible;
  return options;
}

}  // namespace

Process::Process(RankThreads* threads)
    : runtime_(options_of_mpi(threads != nullptr)),
      threads_(threads),
      number_(::getpid()),
      checks_(checks_of_environment(threads != nullptr ? static_cast<std::size_t>(threads->count()) : 1)),
      transport_(engine(), *this) {
  g_placement = placement_of(runtime_, threads);
  const int own = runtime_.rank().value;
  for (int slot = 0; slot < g_placement.count_in(own); ++slot)
    ranks_.push_back(std::make_unique<RankState>(*this, RankId{g_placement.first_in(own) + slot}));
  static_cast<void>(engine().service<StallReport>());
  if (threads_ != nullptr) threads_->attach(&runtime_.worker());
  detail::the_checks = checks_.get();
}

/// Ranks go first, since what they have uses all else.
Process::~Process() {
  tools::keep_counters(engine().counters());
  ranks_.clear();
  detail::the_checks = nullptr;
  if (threads_ != nullptr) threads_->attach(nullptr);
  if (detail::the_turns != nullptr) detail::the_turns->attach(nullptr);
}

bool Process::is_open() const noexcept {
  return std::ranges::any_of(ranks_, [](const auto& rank) { return rank->is_open(); });
}

void Process::part() noexcept {
  // All have called MPI_Finalize by then, where they met.
  if (!had_sessions_) return engine().end_without_waiting();
  parts_ = true;
  part_from_others(*this);
}

bool Process::is_own() const noexcept { return ::getpid() == number_; }

WindowMessenger& Process::windows() {
  if (windows_ == nullptr) windows_ = std::make_unique<WindowMessenger>(engine(), *this);
  return *windows_;
}

Connections& Process::connections() {
  require(threads_ == nullptr, MPI_ERR_UNSUPPORTED_OPERATION,
          "with several ranks in a process (--ranks) a program cannot connect with others or spawn: start it by "
          "`brant run -n {}` alone",
          g_placement.ranks);
  if (connections_ == nullptr) connections_ = std::make_unique<Connections>(*this);
  return *connections_;
}

void Process::hear(Rank from, Word word, const DoorWord& body) noexcept {
  if (connections_ != nullptr) return connections_->hear(from, word, body);
  // The port was closed long ago.
  if (word == Word::knock) static_cast<void>(transport_.tell(from, Word::answered, {.tag = body.tag}));
}

/// Containers that share no memory are hosts of their own.
std::uint64_t Process::host_number() {
  const std::string host = own_place().host;
  return checksum_of(std::as_bytes(std::span(host)));
}

std::size_t calling_slot() noexcept {
  return g_threads != nullptr ? static_cast<std::size_t>(g_threads->current()) : 0;
}

RankLife& rank_life() noexcept { return rank_lives()[calling_slot()]; }

void use_rank_threads(RankThreads& threads) noexcept {
  g_threads = &threads;
  settle_turns(false);
}

int checked_exit_code(int code) noexcept {
  if (code != 0 || !is_open()) return code;
  const char* end = rank_life().world == RankLife::World::running ? "MPI_Finalize" : "MPI_Session_finalize";
  std::fprintf(stderr, "brant MPI: rank %d has ended its program without %s\n", current_rank().id.value, end);
  return 1;
}

void note_rank_end() noexcept {
  if (process() == nullptr) return;
  const RankId id = current_rank().id;
  process()->shared_teams().leave(id);
  process()->transport().lose_rank(id);
}

void end_ranks() noexcept { end_unused_process(); }

/// Where ranks are user-level threads, none of them waits on another one's stack. Whoever comes after a first one that
/// needs no turns gets a level that needs none either, since calls may be under way that have not taken theirs.
int granted_thread_level(int wish) noexcept {
  if (g_threads != nullptr) return std::min<int>(wish, MPI_THREAD_FUNNELED);
  const bool may_overlap = detail::the_turns != nullptr;
  return std::min<int>(wish, may_overlap ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED);
}

void start_world(int thread_level) {
  RankState& rank = made_rank(thread_level);
  rank.start_world(thread_level);
  rank_life().world = RankLife::World::running;
  if (rank.process.threads() != nullptr) return;
  if (const std::string port = port_of_parents(); !port.empty()) {
    auto made = connect_group(*rank.world, 0, [&] { return Where{port, std::nullopt}; });
    made->name = "MPI_COMM_PARENT";
    rank.parent = publish(std::move(made), *rank.world);
    if (checks() != nullptr) [[unlikely]]
      checks()->census.remove(find_communicator(rank.parent));  // it is not the program's to free
  }
}

Session& start_session(ErrorHandler& handler, int thread_level) {
  RankState& rank = made_rank(thread_level);
  rank.process.note_session();
  return rank.open_session(handler, thread_level);
}

void end_world() noexcept {
  rank_life().world = RankLife::World::over;
  current_rank().end_world();
  end_if_late();
}

void end_session(const Session& session) noexcept {
  current_rank().close_session(session);
  end_if_late();
}

/// Without destructors and functions of `atexit`: those of the program may use what has failed.
void end_job(int code, const std::string& text) noexcept {
  std::fflush(nullptr);
  std::fputs(text.c_str(), stderr);
  std::fputc('\n', stderr);
  std::fflush(stderr);
  ::_exit(code);
}

}  // namespace brant::mpi
