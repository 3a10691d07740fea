#include "cli/run/job.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include "cli/run/job_state.h"
#include "cli/run/terminal.h"

extern char** environ;

namespace brant::run {
namespace {

constexpr int kTimeoutExitCode = 124;  // as timeout(1) has it
/// From the request to end to the kill, and from the kill to giving up on a process the kernel does not end.
constexpr std::chrono::seconds kGrace{2};
constexpr std::chrono::seconds kKillTime{5};
/// What a rank's far descendants still hold of its output is waited for this long after the last rank.
constexpr std::chrono::milliseconds kLateOutput{500};

std::string new_job_id() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return fmt::format("{}-{:x}", ::getpid(),
                     static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count()));
}

/// A closed standard descriptor would be taken by one of our sockets, and ranks would write their output into it.
void open_standard_descriptors() {
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != fd)
      throw StartError(1, "/dev/null cannot be opened");
  }
}

/// Every rank costs four descriptors. Returns the limit as it was, which the ranks get back.
rlimit raise_file_limit(int ranks) {
  rlimit old{};
  ::getrlimit(RLIMIT_NOFILE, &old);
  const rlim_t needed = 64 + 4 * static_cast<rlim_t>(ranks);
  rlimit wanted = old;
  if (old.rlim_cur != RLIM_INFINITY && old.rlim_cur < needed) {
    wanted.rlim_cur = std::min(needed, old.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &wanted);
  }
  if (wanted.rlim_cur < needed) {
    throw StartError(
        1, fmt::format("{} ranks need {} open files, but only {} are allowed: raise the hard limit (ulimit -Hn)", ranks,
                       needed, wanted.rlim_cur));
  }
  return old;
}

std::vector<int> cores_to_bind(const JobOptions& options) {
  std::vector<int> cores;
  if (!options.bind_cores) return cores;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    throw StartError(1, fmt::format("--bind core: {}", std::strerror(errno)));
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &allowed)) cores.push_back(core);
  }
  if (cores.size() < static_cast<std::size_t>(options.ranks)) {
    throw StartError(
        1, fmt::format(
               "--bind core: {} ranks do not fit on {} cores; ranks that share a core must be able to yield it, so use "
               "--bind none",
               options.ranks, cores.size()));
  }
  return cores;
}

bool same_file(int left, int right) {
  struct stat a{};
  struct stat b{};
  return ::fstat(left, &a) == 0 && ::fstat(right, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

std::pair<UniqueFd, UniqueFd> output_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw StartError(1, fmt::format("no pipe: {}", std::strerror(errno)));
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

Job::Job(const JobOptions& options)
    : options_(options),
      parts_(options.parts),
      job_id_(new_job_id()),
      cores_(cores_to_bind(options)),
      files_(raise_file_limit(options.ranks)),
      server_(options.ranks, job_id_),
      stdout_(STDOUT_FILENO),
      stderr_(STDERR_FILENO),
      one_sink_(same_file(STDOUT_FILENO, STDERR_FILENO)),
      ranks_(static_cast<std::size_t>(options.ranks)) {
  if (parts_.empty())
    parts_.push_back({.ranks = options.ranks, .command = options.command, .folder = {}, .path = {}, .env = {}});
  find_programs();
}

void Job::find_programs() {
  for (std::size_t number = 0; number < parts_.size(); ++number) {
    const JobOptions::Part& part = parts_[number];
    std::string file;
    try {
      file = find_program(part.command.at(0), part.path);
    } catch (const StartError& error) {
      // Relative paths may also begin in the folder to run in.
      const std::string inside = part.folder + "/" + part.command.at(0);
      const bool is_inside = !part.folder.empty() && part.command.at(0).find('/') != std::string::npos &&
                             ::access(inside.c_str(), X_OK) == 0;
      if (!is_inside && options_.spawner != nullptr)
        options_.spawner->tell(fmt::format("failed {} {}\n", number, error.what()));
      if (!is_inside) throw;
      file = inside;
    }
    if (!part.folder.empty()) file = std::filesystem::absolute(file).string();
    for (int i = 0; i < part.ranks; ++i) programs_.push_back({file, &part, static_cast<int>(number)});
  }
}

const Job::Program& Job::program_of(int rank) const { return programs_[static_cast<std::size_t>(rank)]; }

Job::~Job() {
  // Only after a failed start or when giving up is anything left to do here.
  signal_living(SIGKILL);
  for (const Spawned& job : spawned_) {
    if (!job.ending) static_cast<void>(reap(job.process.pid));
  }
  for (Rank& rank : ranks_) {
    for (int turn = 0; rank.process.pid > 0 && !rank.ending && turn < 200; ++turn) {
      if (reap(rank.process.pid)) break;
      ::usleep(5000);
    }
  }
}

std::vector<std::string> Job::environment(int rank, int boot_socket) const {
  const Program& program = program_of(rank);
  std::map<std::string, std::string> ours = options_.env;
  for (const auto& [name, value] : program.part->env) ours[name] = value;
  ours["BRANT_BOOT_FD"] = std::to_string(boot_socket);
  ours["BRANT_RANK"] = ours["BRANT_LOCAL_RANK"] = std::to_string(rank);
  ours["BRANT_SIZE"] = ours["BRANT_LOCAL_SIZE"] = std::to_string(options_.ranks);
  ours["BRANT_JOB_ID"] = job_id_;
  // Of the job that this one is started in.
  const std::array<std::string_view, 3> foreign = {"BRANT_MPI_APPNUM", "BRANT_MPI_PARENT", "BRANT_SPAWN_NAME"};
  if (!options_.port.empty()) {
    ours["BRANT_MPI_APPNUM"] = std::to_string(program.number);
    ours["BRANT_MPI_PARENT"] = fmt::format("{};{}", job_id_, options_.port);
    ours["BRANT_SPAWN_NAME"] = options_.name;
  }
  std::vector<std::string> result;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view pair(*each);
    const std::string_view name = pair.substr(0, pair.find('='));
    if (std::ranges::find(foreign, name) != foreign.end()) continue;
    if (!options_.port.empty() && name == "BRANT_BOOTSTRAP") continue;  // how the one that spawns was started
    if (!ours.contains(std::string(pair.substr(0, pair.find('='))))) result.emplace_back(pair);
  }
  for (const auto& [name, value] : ours) result.push_back(fmt::format("{}={}", name, value));
  return result;
}

void Job::start(int rank) {
  auto [ours, theirs] = port::launcher::Server::make_pair();
  const std::vector<std::string> variables = environment(rank, theirs.get());
  const Program& program = program_of(rank);
  RankStart how{.program = program.file,
                .arguments = program.part->command,
                .environment = variables,
                .signals = signals_,
                .files = files_};
  how.boot_socket = theirs.get();
  how.folder = program.part->folder;
  if (!cores_.empty()) how.core = cores_[static_cast<std::size_t>(rank)];

  UniqueFd null;
  if (rank == 0 && options_.spawner == nullptr && ::isatty(STDIN_FILENO) == 1) {
    input_ = InputForwarder::open();
    how.input = input_.rank_end();
  } else if (rank != 0 || options_.spawner != nullptr) {
    null.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    how.input = null.get();
  }
  std::pair<UniqueFd, UniqueFd> output;
  std::pair<UniqueFd, UniqueFd> errors;
  bool draws = false;
  // A single rank writes straight to where we write.
  const bool forwards = options_.ranks > 1 || options_.spawner != nullptr;
  if (forwards) {
    output = output_pipe();
    // On a terminal the first rank may draw a progress bar.
    if (rank == 0 && ::isatty(STDERR_FILENO) == 1) errors = open_terminal(STDERR_FILENO);
    draws = static_cast<bool>(errors.first);
    if (!draws) errors = output_pipe();
    how.output = output.second.get();
    how.errors = errors.second.get();
  }
  Rank& self = ranks_[static_cast<std::size_t>(rank)];
  try {
    self.process = start_rank(how);
  } catch (const StartError& error) {
    if (options_.spawner != nullptr)
      options_.spawner->tell(fmt::format("failed {} {}\n", program.number, error.what()));
    throw;
  }
  ++alive_;
  guardian_.watch(self.process.pid);
  input_.close_rank_end();
  server_.add(rank, std::move(ours));
  const std::string prefix = options_.prefix ? fmt::format("[{}{}] ", options_.name, rank) : std::string();
  if (forwards) {
    self.output = RankStream(std::move(output.first), prefix, stdout_);
    self.errors = RankStream(std::move(errors.first), prefix, sink_for_errors(), draws);
  }
}

int Job::run() {
  if (options_.timeout.count() > 0) timeout_at_ = Clock::now() + options_.timeout;
  const auto overdue = [this] { return timeout_at_ && Clock::now() >= *timeout_at_; };
  // Hundreds of ranks take longer to start than some jobs may last.
  for (int rank = 0; rank < options_.ranks && !stop_ && !overdue(); ++rank) {
    start(rank);
    while (const std::optional<int> number = signals_.next()) on_signal(*number);
  }
  if (options_.spawner != nullptr) options_.spawner->tell("started\n");
  while (!finished()) step();
  report_lost_output();
  while (!finished()) step();
  return exit_code_.value_or(0);
}

void Job::watch(int fd, short events, Kind kind, int rank) {
  if (fd < 0) return;
  entries_.push_back({.fd = fd, .events = events, .revents = 0});
  sources_.push_back({kind, rank});
}

void Job::collect_sources() {
  entries_.clear();
  sources_.clear();
  watch(signals_.fd(), POLLIN, Kind::signal, 0);
  if (!stdout_.empty()) watch(stdout_.fd(), POLLOUT, Kind::sink, 0);
  if (!stderr_.empty()) watch(stderr_.fd(), POLLOUT, Kind::sink, 1);
  watch(input_.source(), POLLIN, Kind::input_source, 0);
  watch(input_.target(), POLLOUT, Kind::input_target, 0);
  if (options_.spawner != nullptr) watch(options_.spawner->fd(), POLLIN, Kind::spawner, 0);
  for (std::size_t i = 0; i < spawned_.size(); ++i) {
    if (!spawned_[i].ending) watch(spawned_[i].process.pidfd.get(), POLLIN, Kind::spawned_end, static_cast<int>(i));
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Rank& rank = ranks_[i];
    const int number = static_cast<int>(i);
    if (rank.output.wants_input()) watch(rank.output.fd(), POLLIN, Kind::output, number);
    if (rank.errors.wants_input()) watch(rank.errors.fd(), POLLIN, Kind::errors, number);
    if (rank.ending) continue;
    if (server_.fd(number) >= 0) watch(server_.fd(number), server_.events(number), Kind::boot, number);
    watch(rank.process.pidfd.get(), POLLIN, Kind::end, number);
  }
}

int Job::poll_timeout_ms() const {
  std::optional<Clock::time_point> first = server_.deadline();
  const auto consider = [&](Clock::time_point time) {
    if (!first || time < *first) first = time;
  };
  if (timeout_at_) consider(*timeout_at_);
  if (failure_) consider(failure_->patient_until);
  if (all_ended_at_) consider(*all_ended_at_ + kLateOutput);
  if (stop_) consider(stop_->killed ? stop_->give_up_at : stop_->kill_at);
  if (!first) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*first - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

void Job::step() {
  collect_sources();
  const int ready = ::poll(entries_.data(), entries_.size(), poll_timeout_ms());
  if (ready < 0 && errno != EINTR) throw StartError(1, fmt::format("poll: {}", std::strerror(errno)));
  // Ends come last: what a rank asked and printed before its end should be seen before it.
  std::vector<int> ended;
  for (std::size_t i = 0; ready > 0 && i < entries_.size(); ++i) {
    if (entries_[i].revents == 0) continue;
    if (sources_[i].kind == Kind::end) {
      ended.push_back(sources_[i].rank);
    } else {
      dispatch(entries_[i], sources_[i]);
    }
  }
  // Of those that ended together, one was lost and the others ended because of it. They exit or abort; what a signal
  // killed did not end because of others.
  std::stable_partition(ended.begin(), ended.end(),
                        [&](int rank) { return was_killed(ranks_[static_cast<std::size_t>(rank)].process.pid); });
  for (const int rank : ended) on_end(rank);
  on_bootstrap_news();
  on_time(Clock::now());
}

void Job::dispatch(const pollfd& entry, const Source& source) {
  Rank& rank = ranks_[static_cast<std::size_t>(source.rank % options_.ranks)];
  switch (source.kind) {
    case Kind::signal:
      while (const std::optional<int> number = signals_.next()) on_signal(*number);
      break;
    case Kind::end: break;  // later
    case Kind::spawned_end: on_spawned_end(static_cast<std::size_t>(source.rank)); break;
    case Kind::spawner: on_spawner(); break;
    case Kind::boot:
      if (server_.fd(source.rank) == entry.fd) server_.on_ready(source.rank, entry.revents, Clock::now());
      break;
    case Kind::output: rank.output.on_readable(); break;
    case Kind::errors: rank.errors.on_readable(); break;
    case Kind::sink: (source.rank == 0 ? stdout_ : stderr_).on_writable(); break;
    case Kind::input_source: input_.on_readable(); break;
    case Kind::input_target: input_.on_writable(); break;
  }
}

void Job::on_signal(int number) {
  if (number == SIGTSTP) {
    signal_living(SIGTSTP);
    ::raise(SIGSTOP);
    return;
  }
  if (number == SIGCONT) {
    input_.resume();
    signal_living(SIGCONT);
    return;
  }
  if (stop_ || alive_ == 0) {
    // Asked twice: at once. With no rank left only our own output is in the way.
    signal_living(SIGKILL);
    if (alive_ == 0) abandoned_ = true;
    if (!exit_code_) exit_code_ = 128 + number;
    return;
  }
  say_failure();
  // What was spawned is ended by the launcher of who has spawned it, which says why.
  if (options_.spawner == nullptr) {
    say(fmt::format("got signal {} ({}); ending {}", number, ::strsignal(number),
                    port::launcher::format_ranks(living())));
  }
  stop(number, 128 + number);
}

void Job::on_end(int number) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  const std::optional<Ending> ending = reap(rank.process.pid);
  if (rank.ending || !ending) return;
  rank.ending = ending;
  --alive_;
  guardian_.forget(rank.process.pid);
  rank.output.drain();
  rank.errors.drain();
  const std::string what = ending_text(number);
  if (server_.fd(number) >= 0) server_.on_ready(number, POLLIN, Clock::now());  // a last word: finalize, abort
  server_.rank_ended(number, what);
  on_bootstrap_news();
  if (ending->failed() && !stop_) on_failure(number);
  note_if_all_ended();
}

void Job::note_if_all_ended() {
  if (alive_ > 0) return;
  if (!stop_) say_failure();
  all_ended_at_ = Clock::now();
}

/// A job goes on without those that have spawned it if they have said so.
void Job::on_spawner() {
  options_.spawner->on_readable();
  if (!options_.spawner->take_death() || stop_ || alive_ == 0) return;
  say(fmt::format("the process that has spawned this job has died; ending {}", port::launcher::format_ranks(living())));
  stop(SIGTERM, 1);
}

void Job::on_failure(int number) {
  const Ending& ending = *ranks_[static_cast<std::size_t>(number)].ending;
  if (!exit_code_) exit_code_ = ending.exit_code();
  if (!options_.keep_going) {
    if (!failure_) failure_ = Failure{.rank = number, .patient_until = Clock::now() + options_.patience};
  } else if (alive_ == 0) {
    say(ending_text(number));
  } else {
    say(fmt::format("{}; going on with {} (--keep-going)", ending_text(number),
                    port::launcher::format_ranks(living())));
  }
}

std::string Job::ending_text(int number) const {
  const Rank& rank = ranks_[static_cast<std::size_t>(number)];
  return fmt::format("rank {} (pid {}) {}", number, rank.process.pid, rank.ending->text());
}

std::string Job::failure_text() const {
  const Ending& first = *ranks_[static_cast<std::size_t>(failure_->rank)].ending;
  std::vector<int> alike;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].ending == first) alike.push_back(static_cast<int>(rank));
  }
  // Who fails together has one reason: which of them came first says nothing.
  if (first.by_signal || alike.size() < 2) return ending_text(failure_->rank);
  if (alike.size() == ranks_.size()) return fmt::format("all {} ranks {}", alike.size(), first.text());
  return fmt::format("{} {}", port::launcher::format_ranks(alike), first.text());
}

void Job::say_failure(std::string_view consequence) {
  if (!failure_) return;
  if (failure_->spawned) {
    if (!options_.quiet) say(fmt::format("a job that rank {} has spawned failed{}", failure_->rank, consequence));
    return failure_.reset();
  }
  const bool by_signal = ranks_[static_cast<std::size_t>(failure_->rank)].ending->by_signal;
  if (by_signal || !options_.quiet) say(failure_text() + std::string(consequence));
  failure_.reset();
}

void Job::on_bootstrap_news() {
  for (auto& request : server_.take_spawns()) on_spawn(request);
  for (const std::string& complaint : server_.take_complaints()) say(complaint);
  for (const auto& request : server_.take_aborts()) {
    if (stop_) continue;
    say_failure();
    const pid_t pid = ranks_[static_cast<std::size_t>(request.rank)].process.pid;
    say(fmt::format("rank {} (pid {}) aborted the job with exit code {}: {}", request.rank, pid, request.exit_code,
                    request.text));
    if (!exit_code_) exit_code_ = request.exit_code;
    stop(SIGTERM, request.exit_code);
  }
}

void Job::on_time(Clock::time_point now) {
  server_.tick(now);
  if (timeout_at_ && now >= *timeout_at_) {
    timeout_at_.reset();
    if (alive_ > 0 && !stop_) {
      say_failure();
      say(fmt::format("the job took longer than {} s (--timeout); ending {}",
                      static_cast<double>(options_.timeout.count()) / 1000, port::launcher::format_ranks(living())));
      stop(SIGTERM, kTimeoutExitCode);
    }
  }
  if (failure_ && !stop_ && alive_ > 0 && now >= failure_->patient_until) {
    say_failure(fmt::format("; ending {} because of it", port::launcher::format_ranks(living())));
    stop(SIGTERM, *exit_code_);
  }
  if (stop_ && !stop_->killed && now >= stop_->kill_at) {
    stop_->killed = true;
    if (alive_ > 0)
      say(fmt::format("{} did not end within {} s of being asked and will be killed",
                      port::launcher::format_ranks(living()), kGrace.count()));
    signal_living(SIGKILL);
  }
  if (stop_ && stop_->killed && now >= stop_->give_up_at) abandoned_ = true;
  if (all_ended_at_ && now >= *all_ended_at_ + kLateOutput) {
    all_ended_at_.reset();
    for (Rank& rank : ranks_) {
      rank.output.close();
      rank.errors.close();
    }
  }
}

void Job::stop(int signal, int exit_code) {
  if (!exit_code_) exit_code_ = exit_code;
  const Clock::time_point now = Clock::now();
  stop_ = Stop{.kill_at = now + kGrace, .give_up_at = now + kGrace + kKillTime, .killed = false};
  signal_living(signal);
  signal_living(SIGCONT);  // a stopped process ends only once it goes on
}

void Job::signal_living(int number) const noexcept {
  for (const Rank& rank : ranks_) {
    if (rank.process.pid > 0 && !rank.ending) ::kill(-rank.process.pid, number);
  }
  for (const Spawned& job : spawned_) {
    if (!job.ending) ::kill(-job.process.pid, number);
  }
}

std::vector<int> Job::living() const {
  std::vector<int> result;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].process.pid > 0 && !ranks_[rank].ending) result.push_back(static_cast<int>(rank));
  }
  return result;
}

bool Job::finished() const {
  if (abandoned_) return true;
  const auto open = [](const Rank& rank) { return rank.output.open() || rank.errors.open(); };
  return alive_ == 0 && stdout_.empty() && stderr_.empty() && std::none_of(ranks_.begin(), ranks_.end(), open);
}

/// What the ranks printed and nobody got: a full disk must not look like success. That a reader left is its own choice.
void Job::report_lost_output() {
  const int error = stdout_.error();
  if (error == 0 || error == EPIPE) return;
  if (exit_code_.value_or(0) == 0) exit_code_ = 1;
  say(fmt::format("standard output could not be written: {}: what the ranks printed is not complete",
                  std::strerror(error)));
}

void Job::say(std::string_view text) {
  std::string whose;
  if (options_.spawner != nullptr)
    whose = fmt::format(" (spawned by rank {})", std::string_view(options_.name).substr(0, options_.name.rfind('.')));
  sink_for_errors().append(fmt::format("brant run{}: {}\n", whose, text));
}

int run_job(const JobOptions& options) {
  open_standard_descriptors();
  return Job(options).run();
}

}  // namespace brant::run
