#pragma once

namespace brant::mpi {

class Process;

/// Says that the program of this process has ended, and waits until those of all processes have that it is connected
/// with. Until then messages that it has sent may still have to be fetched here.
void part_from_others(Process& process) noexcept;

/// How many of them go on.
[[nodiscard]] int count_others(Process& process) noexcept;

}  // namespace brant::mpi
