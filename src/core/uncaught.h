#pragma once

namespace brant {

/// From the first call on, an uncaught brant::Error ends the process with status 1 and its text on standard error,
/// once, instead of abort() and a core file: it names the cause and the cure, and a core file says neither. Everything
/// else goes to the terminate handler that was there before. Thread-safe. Throws nothing.
void print_uncaught_errors() noexcept;

}  // namespace brant
