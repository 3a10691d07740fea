#pragma once

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "port/boot/launcher/spawn_plan.h"

namespace brant::mpi {

class Process;

/// The jobs that this process has had started: a line to the launcher of each, by which the two hear of each other's
/// end. The launcher of this process starts them, or else a `brant run` that this process starts itself.
class SpawnedJobs {
 public:
  explicit SpawnedJobs(Process& process) noexcept : process_(process) {}
  ~SpawnedJobs() { leave(); }
  SpawnedJobs(const SpawnedJobs&) = delete;
  SpawnedJobs& operator=(const SpawnedJobs&) = delete;

  /// Throws MPI_ERR_SPAWN where there is no launcher.
  void start(const port::launcher::SpawnPlan& plan);
  /// Of the one that was started last: it may still come.
  [[nodiscard]] bool goes_on();
  /// Why it does not come.
  [[nodiscard]] std::string why_not() const;
  /// It is connected with this process: what becomes of it from now on ends both jobs.
  void note_met() noexcept;
  /// Nothing that happens to this process from now on is of interest to them.
  void leave() noexcept;

 private:
  struct Job {
    UniqueFd line;  ///< None: it has ended.
    std::string heard;
  };
  void listen(Job& job);
  void start_launcher(int plan, int line);

  Process& process_;
  std::vector<Job> jobs_;
};

}  // namespace brant::mpi
