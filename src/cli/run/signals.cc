#include "cli/run/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "cli/run/program.h"

namespace brant::run {

Signals::Signals() {
  sigset_t mask;
  sigemptyset(&mask);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT}) {
    struct sigaction current{};
    sigaction(number, nullptr, &current);
    // A blocked signal is queued even if it is ignored, so one that is ignored must stay out.
    if (current.sa_handler != SIG_IGN) sigaddset(&mask, number);
  }
  fd_.reset(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw StartError(1, fmt::format("signals cannot be read: {}", std::strerror(errno)));
  sigprocmask(SIG_BLOCK, &mask, &old_mask_);
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &old_pipe_);     // a reader that left is a return value of write
  sigaction(SIGTTIN, &ignore, &old_tty_in_);   // in the background, reading the terminal fails instead of stopping us
  sigaction(SIGTTOU, &ignore, &old_tty_out_);  // likewise for writing under `stty tostop`
}

Signals::~Signals() { restore_in_child(); }

std::optional<int> Signals::next() noexcept {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

void Signals::restore_in_child() const noexcept {
  sigaction(SIGPIPE, &old_pipe_, nullptr);
  sigaction(SIGTTIN, &old_tty_in_, nullptr);
  sigaction(SIGTTOU, &old_tty_out_, nullptr);
  sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
}

}  // namespace brant::run
