#pragma once

#include <poll.h>
#include <sys/resource.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run/guardian.h"
#include "cli/run/input.h"
#include "cli/run/job.h"
#include "cli/run/output.h"
#include "cli/run/rank.h"
#include "cli/run/signals.h"
#include "port/boot/launcher/server.h"

namespace brant::run {

/// The supervisor: one thread, one poll loop over signals, process ends, bootstrap sockets, output, and the terminal.
class Job {
 public:
  explicit Job(const JobOptions& options);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int run();

 private:
  using Clock = std::chrono::steady_clock;

  struct Rank {
    RankProcess process;
    RankStream output;
    RankStream errors;
    std::optional<Ending> ending;
  };
  /// A job that a rank has spawned.
  struct Spawned {
    int rank;
    RankProcess process;
    std::optional<Ending> ending;
  };
  /// What ranks run.
  struct Program {
    std::string file;
    const JobOptions::Part* part;
    int number;
  };
  enum class Kind { signal, end, spawned_end, spawner, boot, output, errors, sink, input_source, input_target };
  struct Source {
    Kind kind;
    int rank;  // of the sink: 0 standard output, 1 standard error
  };
  /// The first failure, from which on the others may end by themselves for a while.
  struct Failure {
    int rank;
    Clock::time_point patient_until;
    bool spawned = false;  ///< By a job that the rank has spawned, which has said why.
  };
  /// Why and how far the job is being ended from outside.
  struct Stop {
    Clock::time_point kill_at;
    Clock::time_point give_up_at;
    bool killed = false;
  };

  void find_programs();
  [[nodiscard]] const Program& program_of(int rank) const;
  void start(int rank);
  std::vector<std::string> environment(int rank, int boot_socket) const;

  void watch(int fd, short events, Kind kind, int rank);
  void collect_sources();
  [[nodiscard]] int poll_timeout_ms() const;
  void dispatch(const pollfd& entry, const Source& source);
  void step();

  void on_signal(int number);
  void on_end(int rank);
  void on_failure(int rank);
  void on_spawn(port::launcher::Server::SpawnRequest& request);
  void on_spawned_end(std::size_t number);
  void on_spawner();
  void note_if_all_ended();
  void on_bootstrap_news();
  void on_time(Clock::time_point now);

  [[nodiscard]] std::string ending_text(int rank) const;
  /// Who failed as the first one did, and how.
  [[nodiscard]] std::string failure_text() const;
  /// Says what has not been said yet, if anything.
  void say_failure(std::string_view consequence = {});
  /// Asks all living ranks to end and sees to it that they do. The first reason decides the exit code.
  void stop(int signal, int exit_code);
  void signal_living(int number) const noexcept;
  [[nodiscard]] std::vector<int> living() const;
  [[nodiscard]] bool finished() const;
  void say(std::string_view text);
  void report_lost_output();
  OutputSink& sink_for_errors() { return one_sink_ ? stdout_ : stderr_; }

  const JobOptions& options_;
  std::vector<JobOptions::Part> parts_;
  std::vector<Program> programs_;  ///< By rank.
  std::string job_id_;
  std::vector<int> cores_;
  rlimit files_{};
  Signals signals_;
  Guardian guardian_;
  port::launcher::Server server_;
  OutputSink stdout_;
  OutputSink stderr_;
  bool one_sink_ = false;
  InputForwarder input_;
  std::vector<Rank> ranks_;
  std::vector<Spawned> spawned_;
  int alive_ = 0;

  std::vector<pollfd> entries_;
  std::vector<Source> sources_;
  std::optional<int> exit_code_;
  std::optional<Failure> failure_;  ///< Until it is said.
  std::optional<Stop> stop_;
  std::optional<Clock::time_point> timeout_at_;
  std::optional<Clock::time_point> all_ended_at_;
  bool abandoned_ = false;
};

}  // namespace brant::run
