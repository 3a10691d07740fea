#include "models/mpi/ranks/rank_stack.h"

#include <sys/mman.h>

#include <cerrno>
#include <system_error>

namespace brant::mpi {

RankStack::RankStack(std::size_t bytes) : bytes_((bytes + 4095) / 4096 * 4096 + kGuardBytes) {
  void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(), "no address space for the stack of a rank");
  memory_ = static_cast<std::byte*>(memory);
  if (::mprotect(memory_, kGuardBytes, PROT_NONE) == 0) return;
  const int error = errno;
  ::munmap(memory_, bytes_);
  throw std::system_error(error, std::generic_category(), "the end of the stack of a rank cannot be guarded");
}

RankStack::~RankStack() { ::munmap(memory_, bytes_); }

}  // namespace brant::mpi
