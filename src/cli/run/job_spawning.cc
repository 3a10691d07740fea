// The jobs that ranks of this one spawn: each has a `brant run` of its own, a child of this one.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include <fmt/format.h>

#include "cli/run/job_state.h"

extern char** environ;

namespace brant::run {

/// What goes wrong is for the one who asked: its socket closes.
void Job::on_spawn(port::launcher::Server::SpawnRequest& request) {
  if (stop_) return;
  const std::vector<std::string> command = {"brant", "run-spawned", std::to_string(request.plan.get()),
                                            std::to_string(request.line.get())};
  const std::string program = "/proc/self/exe";
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) variables.emplace_back(*each);
  UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  RankStart how{
      .program = program, .arguments = command, .environment = variables, .signals = signals_, .files = files_};
  how.passed = {request.plan.get(), request.line.get()};
  how.input = null.get();
  try {
    spawned_.push_back({request.rank, start_rank(how), std::nullopt});
    ++alive_;
  } catch (const StartError& error) {
    say(fmt::format("what rank {} spawns cannot be started: {}", request.rank, error.what()));
  }
}

void Job::on_spawned_end(std::size_t number) {
  Spawned& job = spawned_[number];
  const std::optional<Ending> ending = reap(job.process.pid);
  if (job.ending || !ending) return;
  job.ending = ending;
  job.process.pidfd.reset();
  --alive_;
  if (ending->failed() && !stop_) {
    if (!exit_code_) exit_code_ = ending->exit_code();
    if (!options_.keep_going && !failure_)
      failure_ = Failure{.rank = job.rank, .patient_until = Clock::now() + options_.patience, .spawned = true};
  }
  note_if_all_ended();
}

}  // namespace brant::run
