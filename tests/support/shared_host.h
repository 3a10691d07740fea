#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "base/env.h"
#include "support/own_host.h"

namespace brant::test {

/// Makes hosts of so many ranks each out of the processes that one launcher started: the first rank of each makes a
/// host, the others join it. Before the runtime is opened; `rank` by BRANT_RANK. False where the machine does not allow
/// it.
class SharedHost {
 public:
  bool join(int ranks_per_host) {
    const char* text = std::getenv("BRANT_RANK");
    if (text == nullptr) return false;
    const int rank = std::atoi(text);
    const std::filesystem::path file =
        std::filesystem::temp_directory_path() /
        ("brant-test-host-" + std::to_string(::getppid()) + "-" + std::to_string(rank / ranks_per_host));
    if (rank % ranks_per_host != 0) return join_that_of(pid_in(file));
    const bool made = become_own_host();
    made_ = file;
    const std::filesystem::path part = file.string() + ".part";
    std::ofstream(part) << (made ? ::getpid() : -1) << '\n';
    std::filesystem::rename(part, file);
    return made;
  }

  /// The same, where BRANT_TEST_RANKS_PER_HOST says of how many.
  bool join_if_told() {
    const std::optional<std::int64_t> ranks = env_int("BRANT_TEST_RANKS_PER_HOST");
    return ranks && *ranks > 0 && join(static_cast<int>(*ranks));
  }

  SharedHost() = default;
  SharedHost(const SharedHost&) = delete;
  SharedHost& operator=(const SharedHost&) = delete;
  ~SharedHost() {
    std::error_code error;
    if (!made_.empty()) std::filesystem::remove(made_, error);
  }

 private:
  static pid_t pid_in(const std::filesystem::path& file) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < until) {
      pid_t pid = 0;
      if (std::ifstream(file) >> pid) return pid;
      std::this_thread::yield();
    }
    return -1;
  }
  static bool join_that_of(pid_t pid) {
    if (pid <= 0) return false;
    const auto fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (fd < 0) return false;
    const bool joined =
        ::setns(fd, CLONE_NEWIPC | CLONE_NEWUTS) == 0 || ::setns(fd, CLONE_NEWUSER | CLONE_NEWIPC | CLONE_NEWUTS) == 0;
    ::close(fd);
    return joined;
  }

  std::filesystem::path made_;
};

}  // namespace brant::test
