#include "cli/doctor/self_test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "base/env.h"
#include "base/unique_fd.h"

namespace brant::cli::doctor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(40);
constexpr std::size_t kOutputMax = 64 * 1024;

struct Outcome {
  int exit_code = -1;
  std::string output;  ///< Both streams, the first 64 KiB.
};

/// Reads until the end of the stream or the deadline. False: the deadline.
bool read_all(int fd, std::string& text) {
  const Clock::time_point deadline = Clock::now() + kPatience;
  std::array<char, 4096> part{};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd ready{fd, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) == 0) return false;
    const ssize_t count = ::read(fd, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    if (text.size() < kOutputMax) text.append(part.data(), static_cast<std::size_t>(count));
  }
}

Outcome run_command(std::vector<std::string> command) {
  Outcome outcome;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {-1, std::strerror(errno)};
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, writer.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, writer.get(), STDERR_FILENO);
  pid_t child = -1;
  const int failed = ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return {-1, std::strerror(failed)};
  writer = UniqueFd();
  if (!read_all(reader.get(), outcome.output)) {
    ::kill(child, SIGTERM);  // `brant run` then ends its ranks
    outcome.output += fmt::format("\nno answer within {} s", kPatience.count());
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

/// The benchmark's own complaint, else the last line that says something.
std::string complaint(const std::string& text) {
  if (const std::size_t own = text.find("brant bench: "); own != std::string::npos) {
    return text.substr(own, std::min(text.find('\n', own), text.size()) - own);
  }
  const std::size_t end = text.find_last_not_of(" \n");
  if (end == std::string::npos) return "no output";
  const std::size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

/// Column "p50 us" of the line for one size; "?" if there is none.
std::string median_of(const std::string& table, const std::string& size) {
  for (std::size_t begin = 0; begin < table.size();) {
    const std::size_t end = std::min(table.find('\n', begin), table.size());
    const std::string line = table.substr(begin, end - begin);
    begin = end + 1;
    std::array<char, 32> name{}, least{}, median{};
    if (std::sscanf(line.c_str(), "%31s %31s %31s", name.data(), least.data(), median.data()) == 3 &&
        name.data() == size)
      return median.data();
  }
  return "?";
}

Finding exchange_messages(const std::string& self, const std::string& memory) {
  const std::string name = "exchange, " + memory;
  const Outcome outcome =
      run_command({self, "run", "-n", "2", "--no-prefix", "--timeout", "30", "--", self, "bench", "latency", "--sizes",
                   "8,1M", "--iterations", "20", "--check", "--memory", memory});
  if (outcome.exit_code != 0) {
    return {
        Level::problem, name,
        fmt::format("two processes could not exchange 8 B and 1 MiB of {} memory (exit code {}): {}", memory,
                    outcome.exit_code, complaint(outcome.output)),
        fmt::format("see the lines above; to repeat it: brant bench latency --sizes 8,1M --check --memory {}", memory)};
  }
  return {Level::ok,
          name,
          fmt::format("8 B and 1 MiB between two processes, every byte right; one way {} and {} us",
                      median_of(outcome.output, "8"), median_of(outcome.output, "1M")),
          {}};
}

}  // namespace

std::vector<Finding> run_self_tests(const Facts& facts) {
  if (!env("BRANT_BOOT_FD").empty()) {
    return {{Level::warning, "exchange", "not tried: this process was started by `brant run`",
             "start `brant doctor` by itself"}};
  }
  if (!facts.ucx_error.empty()) return {{Level::warning, "exchange", "not tried: there is no UCX", ""}};
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return {{Level::warning, "exchange", "not tried: /proc is not mounted", "mount /proc"}};
  std::vector<Finding> findings = {exchange_messages(self, "host")};
  if (facts.gpus >= 2) findings.push_back(exchange_messages(self, "cuda"));
  return findings;
}

}  // namespace brant::cli::doctor
