#include "models/mpi/process.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "base/env.h"
#include "models/mpi/stall_report.h"
#include "models/mpi/tools/performance_variables.h"
#include "models/mpi/windows/window.h"
#include "models/mpi/windows/window_messenger.h"

namespace brant::mpi {

namespace {

Process* g_process = nullptr;
RankThreads* g_threads = nullptr;
constexpr std::int64_t kRanksMax = 1 << 20;
std::size_t g_running = 0;  ///< Ranks between MPI_Init and MPI_Finalize.

/// How many ranks the job has, which `brant run --ranks` says where there are several in a process.
RankPlacement placement_of(const Runtime& runtime, const RankThreads* threads) {
  RankPlacement placement{.ranks = runtime.size(), .processes = runtime.size()};
  if (threads == nullptr) return placement;
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

}  // namespace

RankPlacement Process::g_placement;

Process::Process(int thread_level, RankThreads* threads)
    : threads_(threads), thread_level_(thread_level), transport_(engine(), *this) {
  g_placement = placement_of(runtime_, threads);
  const int own = runtime_.rank().value;
  for (int slot = 0; slot < g_placement.count_in(own); ++slot)
    ranks_.push_back(std::make_unique<RankState>(*this, RankId{g_placement.first_in(own) + slot}));
  static_cast<void>(engine().service<StallReport>());
  if (threads_ != nullptr) threads_->attach(&runtime_.worker());
}

/// Ranks go first, since what they have uses all else.
Process::~Process() {
  tools::keep_counters(engine().counters());
  ranks_.clear();
  if (threads_ != nullptr) threads_->attach(nullptr);
}

WindowMessenger& Process::windows() {
  if (windows_ == nullptr) windows_ = std::make_unique<WindowMessenger>(engine(), *this);
  return *windows_;
}

/// By the number that the kernel took when it started.
std::uint64_t Process::host_number() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(file, text);
  std::uint64_t number = 0xcbf29ce484222325u;
  for (const char c : text) number = (number ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return number;
}

Process* process() noexcept { return g_process; }

std::size_t calling_slot() noexcept {
  return g_threads != nullptr ? static_cast<std::size_t>(g_threads->current()) : 0;
}

RankState& current_rank() noexcept { return g_process->rank(); }

Life& life() noexcept {
  static std::vector<Life> lives(g_threads != nullptr ? static_cast<std::size_t>(g_threads->count()) : 1);
  return lives[g_threads != nullptr ? static_cast<std::size_t>(g_threads->current()) : 0];
}

void use_rank_threads(RankThreads& threads) noexcept { g_threads = &threads; }

int checked_exit_code(int code) noexcept {
  if (code != 0 || g_process == nullptr || life() != Life::running) return code;
  std::fprintf(stderr, "brant MPI: rank %d has ended its program without MPI_Finalize\n", current_rank().id.value);
  return 1;
}

void start_rank(int thread_level) {
  if (g_process == nullptr) g_process = new Process(thread_level, g_threads);
  ++g_running;
  g_process->rank().open_communicators();
  life() = Life::running;
}

void end_rank() noexcept {
  life() = Life::over;
  if (--g_running != 0) return;
  delete g_process;
  g_process = nullptr;
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
