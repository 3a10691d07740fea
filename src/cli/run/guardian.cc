#include "cli/run/guardian.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "cli/run/program.h"
#include "port/boot/launcher/frame.h"

namespace brant::run {
namespace {

// On the pipe: a group to watch, its negative to forget it, 0 for farewell.

void close_all_but(int keep) noexcept {
  const int last = static_cast<int>(::sysconf(_SC_OPEN_MAX));
  // Descriptors are few here: this runs before any rank has a socket. 3 covers the standard ones of an odd parent.
  for (int fd = 0; fd < (last < 1024 ? last : 1024); ++fd) {
    if (fd != keep) ::close(fd);
  }
}

[[noreturn]] void guard(int pipe) noexcept {
  ::setsid();  // a Ctrl-C or a hang-up of the terminal is for `brant run`
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  ::prctl(PR_SET_NAME, "brant-guardian");
  close_all_but(pipe);
  std::array<pid_t, port::launcher::kMaxRanks> groups{};
  std::size_t count = 0;
  pid_t number = 0;
  while (true) {
    const ssize_t got = ::read(pipe, &number, sizeof number);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof number) break;
    if (number == 0) ::_exit(0);
    if (number > 0 && count < groups.size()) groups[count++] = number;
    for (std::size_t i = 0; number < 0 && i < count; ++i) {
      if (groups[i] == -number) groups[i] = groups[--count];
    }
  }
  for (std::size_t i = 0; i < count; ++i) ::kill(-groups[i], SIGKILL);
  ::_exit(0);
}

}  // namespace

Guardian::Guardian() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw StartError(1, fmt::format("no pipe: {}", std::strerror(errno)));
  UniqueFd read_end(ends[0]);
  pipe_.reset(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0) throw StartError(1, fmt::format("no process can be started: {}", std::strerror(errno)));
  if (pid_ == 0) guard(read_end.get());
}

Guardian::~Guardian() {
  tell(0);
  pipe_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Guardian::watch(pid_t group) noexcept { tell(group); }
void Guardian::forget(pid_t group) noexcept { tell(-group); }

void Guardian::tell(pid_t number) noexcept {
  // If someone killed the guardian, the job runs on without it.
  while (::write(pipe_.get(), &number, sizeof number) < 0 && errno == EINTR) {
  }
}

}  // namespace brant::run
