#pragma once

#include <pthread.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): of POSIX

namespace brant {

/// Signals of the process belong to the program's own threads: one that is made meanwhile gets none.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace brant
