#include "cli/run/rank.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "cli/run/program.h"

namespace brant::run {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

void redirect(int from, int to) noexcept {
  if (from >= 0 && from != to) ::dup2(from, to);
}

/// Between fork and execve: only async-signal-safe calls.
[[noreturn]] void become(const RankStart& start, char* const* argv, char* const* envp, pid_t launcher,
                         int report) noexcept {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(1);  // it died before the kernel was asked to tell us
  redirect(start.input, STDIN_FILENO);
  redirect(start.output, STDOUT_FILENO);
  redirect(start.errors, STDERR_FILENO);
  ::fcntl(start.boot_socket, F_SETFD, 0);
  for (const int fd : start.passed) ::fcntl(fd, F_SETFD, 0);
  ::setrlimit(RLIMIT_NOFILE, &start.files);
  if (start.core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(static_cast<std::size_t>(*start.core), &cores);
    ::sched_setaffinity(0, sizeof cores, &cores);
  }
  start.signals.restore_in_child();
  if (!start.folder.empty() && ::chdir(start.folder.c_str()) != 0) {
    const int error = -errno;
    [[maybe_unused]] const ssize_t told = ::write(report, &error, sizeof error);
    ::_exit(127);
  }
  ::execve(start.program.c_str(), argv, envp);
  const int error = errno;
  [[maybe_unused]] const ssize_t told = ::write(report, &error, sizeof error);
  ::_exit(127);
}

[[noreturn]] void throw_exec_error(const RankStart& start, int error) {
  if (error < 0)
    throw StartError(1, fmt::format("'{}' is no folder to run in: {}", start.folder, std::strerror(-error)));
  if (error == ENOEXEC) {
    throw StartError(
        126, fmt::format("'{}' is no program this system can execute (a script needs a first line like #!/bin/sh)",
                         start.program));
  }
  if (error == ENOENT) {
    throw StartError(127,
                     fmt::format("'{}' cannot be executed: the interpreter it names does not exist", start.program));
  }
  throw StartError(126, fmt::format("'{}' cannot be executed: {}", start.program, std::strerror(error)));
}

}  // namespace

RankProcess start_rank(const RankStart& start) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw StartError(1, fmt::format("no pipe: {}", std::strerror(errno)));
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const std::vector<char*> argv = pointers(start.arguments);
  const std::vector<char*> envp = pointers(start.environment);
  const pid_t launcher = ::getpid();
  RankProcess process;
  process.pid = ::fork();
  if (process.pid < 0) {
    throw StartError(1, fmt::format("no more processes can be started: {} (see `ulimit -u`)", std::strerror(errno)));
  }
  if (process.pid == 0) become(start, argv.data(), envp.data(), launcher, write_end.get());
  ::setpgid(process.pid, process.pid);  // the child does it too; whoever comes first
  write_end.reset();
  int error = 0;
  ssize_t got = 0;
  while ((got = ::read(read_end.get(), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (got == 0) process.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  const int pidfd_error = errno;
  if (process.pidfd) return process;
  ::kill(process.pid, SIGKILL);
  ::waitpid(process.pid, nullptr, 0);
  if (got != 0) throw_exec_error(start, error);
  throw StartError(1, fmt::format("a process cannot be watched (pidfd_open: {}): Linux 5.3 or later is needed",
                                  std::strerror(pidfd_error)));
}

std::string Ending::text() const {
  if (!by_signal) return fmt::format("ended with exit code {}", number);
  return fmt::format("was killed by signal {} ({}{})", number, ::strsignal(number), dumped ? ", core dumped" : "");
}

bool was_killed(pid_t pid) noexcept {
  siginfo_t info{};
  const bool ended =
      ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
  return ended && info.si_code != CLD_EXITED && info.si_status != SIGABRT;
}

std::optional<Ending> reap(pid_t pid) noexcept {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != pid)
    return std::nullopt;
  // While the leader is unreaped, its id cannot be reused: nobody else is hit.
  ::kill(-pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return Ending{
      .by_signal = info.si_code != CLD_EXITED, .number = info.si_status, .dumped = info.si_code == CLD_DUMPED};
}

}  // namespace brant::run
