#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "cli/run/program.h"
#include "cli/run/spawner.h"

namespace brant::run {

struct JobOptions {
  int ranks = 1;
  bool bind_cores = false;               ///< Rank i may only use the i-th core that this process may use.
  bool prefix = true;                    ///< "[rank] " before every line, if there is more than one rank.
  bool quiet = false;                    ///< Nothing is said of exit codes: the program has said why.
  bool keep_going = false;               ///< One rank's failure does not end the others.
  std::chrono::milliseconds timeout{0};  ///< 0: none.
  /// After the first failure the others may end by themselves for so long: who fails with it, or notices it, writes
  /// what it has to say. Then they are asked to.
  std::chrono::milliseconds patience{1000};
  std::map<std::string, std::string> env;
  std::vector<std::string> command;  ///< The program and its arguments; not empty.

  /// Where ranks differ in what they run: the first ones have the first part, and so on. Else one part has them all.
  struct Part {
    int ranks = 1;
    std::vector<std::string> command;
    std::string folder;  ///< To run in; empty: as `brant run`.
    std::string path;    ///< Folders to look for the program first.
    std::map<std::string, std::string> env;
  };
  std::vector<Part> parts;
  std::string name;  ///< Of a job that was spawned: before the ranks in prefixes.
  std::string port;  ///< Where it meets those that spawned it.
  Spawner* spawner = nullptr;
};

/// Starts the ranks and returns once all have ended and their output is written. The result is the exit code for `brant
/// run`: 0 if all ranks ended with 0, the code of the first failure (128 + signal for a signal), 124 after the timeout,
/// 128 + signal if `brant run` was told to end. Nothing of the job is left running. Throws StartError if it could not
/// start.
int run_job(const JobOptions& options);

}  // namespace brant::run
