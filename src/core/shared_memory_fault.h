#pragma once

#include <cstdint>
#include <string>

namespace brant {

/// What processes of one host need of their system to connect to each other.
struct SharedMemoryPlace {
  std::uint64_t bytes = 0;  ///< Of /dev/shm; 0: none is mounted.
  std::uint64_t free_bytes = 0;
  bool own_proc = true;  ///< /proc is that of this process's PID namespace.
};

SharedMemoryPlace look_at_shared_memory() noexcept;

/// Why two processes of one host may have failed to connect there, with the cure, as an end of an error text; empty if
/// there is nothing to be seen.
std::string shared_memory_fault(const SharedMemoryPlace& place);

}  // namespace brant
