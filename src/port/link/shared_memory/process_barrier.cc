#include "port/link/shared_memory/process_barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace brant::port::peer {
namespace {

bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

bool take_part_in_process_barriers() noexcept {
  return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) && membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

void process_barrier() noexcept { static_cast<void>(membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)); }

}  // namespace brant::port::peer
