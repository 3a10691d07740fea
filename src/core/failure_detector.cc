#include "core/failure_detector.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/log.h"
#include "base/process_stat.h"
#include "brant/base/status.h"

namespace brant {

FailureDetector::FailureDetector() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_)
    throw Error(Status::io_error, fmt::format("epoll_create1 for the failure detector: {}", std::strerror(errno)));
}

namespace {

/// A process that dies closes its sockets and frees its memory before a pidfd tells its end. UCX 1.22 must not connect
/// to it then: a refused connection is given up while a callback for it is still queued, which crashes later.
bool exits(pid_t pid) noexcept {
  const Result<ProcessStat> stat = read_process_stat(pid);
  return stat && stat->exiting();
}

bool lives(pid_t pid) noexcept { return ::kill(pid, 0) == 0 || errno != ESRCH; }

}  // namespace

bool FailureDetector::watch(int rank, pid_t pid) {
  forget(rank);  // it may be watched already, if no connection came about the last time
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    if (errno == ESRCH) return false;
    return watch_by_pid(rank, pid, "pidfd_open");
  }
  if (exits(pid)) return false;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = rank;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, pidfd.get(), &event) != 0) {
    return watch_by_pid(rank, pid, "epoll_ctl");
  }
  watched_.push_back({rank, std::move(pidfd)});
  return true;
}

/// Where descriptors are short, or the kernel has no pidfds: asked for again and again, which takes none. A process
/// that sleeps learns of the death when it looks at its peers the next time, and not at once.
bool FailureDetector::watch_by_pid(int rank, pid_t pid, const char* failed) {
  log::info("rank {} (pid {}) is watched by its pid: {}: {}", rank, pid, failed, std::strerror(errno));
  if (!lives(pid)) return false;
  by_pid_.push_back({rank, pid});
  return true;
}

void FailureDetector::forget(int rank) noexcept {
  std::erase_if(watched_, [rank](const Watched& watched) { return watched.rank == rank; });
  std::erase_if(by_pid_, [rank](const WatchedByPid& watched) { return watched.rank == rank; });
}

std::vector<int> FailureDetector::poll() {
  std::vector<int> dead;
  for (const WatchedByPid& watched : by_pid_) {
    if (!lives(watched.pid)) dead.push_back(watched.rank);
  }
  std::array<epoll_event, 16> events{};
  const int count =
      watched_.empty() ? 0 : ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) dead.push_back(events[static_cast<std::size_t>(i)].data.fd);
  // Closing the pidfd takes it out of the epoll set, so a death is reported once.
  for (const int rank : dead) forget(rank);
  return dead;
}

}  // namespace brant
