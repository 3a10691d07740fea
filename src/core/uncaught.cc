#include "core/uncaught.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "base/log.h"
#include "brant/base/status.h"

namespace brant {
namespace {

std::terminate_handler g_previous = nullptr;

[[noreturn]] void on_terminate() {
  if (const std::exception_ptr current = std::current_exception()) {
    try {
      std::rethrow_exception(current);
    } catch (const Error& error) {
      log::error("{}", error.what());
      std::fflush(stdout);  // not all streams: a thread may sit in a read and hold its lock
      ::_exit(1);           // no destructors: the stack was not unwound, and threads may still run
    } catch (...) {         // not ours
    }
  }
  if (g_previous != nullptr) g_previous();
  std::abort();
}

}  // namespace

void print_uncaught_errors() noexcept {
  static const bool once = [] {
    g_previous = std::get_terminate();
    std::set_terminate(&on_terminate);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace brant
