#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace brant::port::launcher {

/// What a program wants to be started beside it, as one job: written by it into a memory file, read by the `brant run`
/// that starts that job. Between the two lies a socket: the new launcher says "started\n", or "failed PART WHY\n" where
/// PART cannot be started, and closes it when the job has ended; the program says kMet once the two are connected, so
/// that a failure of the job is nobody else's before, and kLeft when it has nothing more to do with the job. A socket
/// that closes without that is a program that died, and the job ends with it.
struct SpawnPlan {
  struct Part {
    std::vector<std::string> command;  ///< The program and its arguments.
    std::int32_t processes = 1;
    std::string folder;                  ///< To run in; empty: where the plan runs.
    std::string path;                    ///< Folders to look for the program first, as PATH has them.
    std::vector<std::string> variables;  ///< NAME=VALUE, more than the environment has.
  };

  std::string name;    ///< Of the job, before the ranks in the prefixes of its output: "0." of one that rank 0 spawned.
  std::string port;    ///< Where its processes meet those that have spawned them.
  std::string folder;  ///< Where relative paths begin.
  std::vector<std::string> environment;
  std::vector<Part> parts;
};

inline constexpr char kMet = 'm';
inline constexpr char kLeft = 'b';

[[nodiscard]] std::vector<std::byte> pack(const SpawnPlan& plan);
/// Throws Error: version_mismatch, invalid_argument.
[[nodiscard]] SpawnPlan unpack_spawn_plan(std::span<const std::byte> packed);

}  // namespace brant::port::launcher
