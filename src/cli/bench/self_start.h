#pragma once

namespace brant::cli {

/// True if nobody started this process as one of several. Throws Error for a launcher that brant recognises but does
/// not speak.
bool started_alone();

/// Replaces this process by `brant run -n RANKS` of the same command line. Returns only by throwing Error.
[[noreturn]] void restart_as_job(int ranks);

}  // namespace brant::cli
