#include "models/mpi/last_error.h"

#include <optional>

#include "models/mpi/call_error.h"

namespace brant::mpi {

namespace {

/// Of the process: whoever asks does so before another rank of it runs, or another thread calls MPI, as a rule.
std::optional<CallError> g_last;

}  // namespace

void note_last_error(const CallError& error) noexcept {
  try {
    g_last = error;
  } catch (const std::bad_alloc&) {
    g_last.reset();
  }
}

std::string_view last_error_text(int error_class) noexcept {
  if (!g_last || g_last->error_class() != error_class) return {};
  return g_last->what();
}

}  // namespace brant::mpi
