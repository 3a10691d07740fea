#include "models/mpi/ranks/fault_report.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdio>

namespace brant::mpi {

namespace {

const RankScheduler* g_scheduler = nullptr;
int g_first = 0;
pthread_t g_thread;
alignas(64) std::array<std::byte, std::size_t{64} * 1024> g_stack;  ///< The rank's own may be full.

/// Only what is allowed in a handler. The fault comes again as the handler returns, and then ends the process.
void on_fault(int signal, siginfo_t* info, void*) noexcept {
  std::signal(signal, SIG_DFL);
  if (!g_scheduler->in_rank() || ::pthread_equal(::pthread_self(), g_thread) == 0) return;
  const int rank = g_first + g_scheduler->current();
  char text[256];
  const RankStack& stack = g_scheduler->running_stack();
  const int length =
      stack.guards(info->si_addr)
          ? std::snprintf(text, sizeof text,
                          "brant MPI: rank %d has used up its stack of %zu bytes: set BRANT_MPI_STACK to more\n", rank,
                          stack.bytes())
          : std::snprintf(text, sizeof text, "brant MPI: rank %d has touched memory that is not there, at %p\n", rank,
                          info->si_addr);
  static_cast<void>(!::write(STDERR_FILENO, text, static_cast<std::size_t>(std::clamp(length, 0, 255))));
}

}  // namespace

void report_faults(const RankScheduler& scheduler, int first) noexcept {
  g_scheduler = &scheduler;
  g_first = first;
  g_thread = ::pthread_self();
  stack_t stack{};
  stack.ss_sp = g_stack.data();
  stack.ss_size = g_stack.size();
  if (::sigaltstack(&stack, nullptr) != 0) return;
  struct sigaction action{};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS}) ::sigaction(signal, &action, nullptr);
}

}  // namespace brant::mpi
