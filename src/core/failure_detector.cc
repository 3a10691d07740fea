#include "core/failure_detector.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/log.h"
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
  constexpr unsigned kExiting = 0x4;  // PF_EXITING, set before anything is closed
  char path[32];
  std::snprintf(path, sizeof(path), "/proc/%d/stat", static_cast<int>(pid));
  const UniqueFd file(::open(path, O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t bytes = file ? ::read(file.get(), text, sizeof(text) - 1) : -1;
  if (bytes <= 0) return false;
  text[bytes] = 0;
  const char* rest = std::strrchr(text, ')');  // the name before it may hold anything
  char state = 0;
  unsigned flags = 0;
  if (rest == nullptr || std::sscanf(rest, ") %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2) return false;
  return state == 'Z' || state == 'X' || (flags & kExiting) != 0;
}

}  // namespace

bool FailureDetector::watch(int rank, pid_t pid) {
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    if (errno == ESRCH) return false;
    log::info("rank {} (pid {}) cannot be watched for death: pidfd_open: {}", rank, pid, std::strerror(errno));
    return true;
  }
  if (exits(pid)) return false;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = rank;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, pidfd.get(), &event) != 0) {
    log::warn("rank {} (pid {}) cannot be watched for death: epoll_ctl: {}", rank, pid, std::strerror(errno));
    return true;
  }
  watched_.push_back({rank, std::move(pidfd)});
  return true;
}

void FailureDetector::forget(int rank) noexcept {
  std::erase_if(watched_, [rank](const Watched& watched) { return watched.rank == rank; });
}

std::vector<int> FailureDetector::poll() {
  std::vector<int> dead;
  if (watched_.empty()) return dead;
  std::array<epoll_event, 16> events{};
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) dead.push_back(events[static_cast<std::size_t>(i)].data.fd);
  // Closing the pidfd takes it out of the epoll set, so a death is reported once.
  for (const int rank : dead) forget(rank);
  return dead;
}

}  // namespace brant
