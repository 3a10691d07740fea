#pragma once

#include <string>
#include <vector>

namespace brant::bench {

/// True if nobody started this process as one of several. Throws Error for a launcher that brant recognises but does
/// not speak.
bool started_alone();

/// The program of this process, and its arguments. Throws Error (io_error).
std::vector<std::string> own_command();

/// Replaces this process by `brant run -n RANKS` of the same command line. Returns only by throwing Error.
[[noreturn]] void restart_as_job(int ranks);

/// Replaces this process by this program with its arguments. Returns only by throwing Error.
[[noreturn]] void replace_process(std::vector<std::string> command);

/// Most faults hit all ranks alike, and one report is enough: rank 0 speaks at once, and the launcher ends the others,
/// which wait here for that.
void wait_to_be_ended();

}  // namespace brant::bench
