#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/unique_fd.h"
#include "port/memory/cuda/cuda_device.h"

namespace brant::port::memory {

Result<void*> CudaDevice::open_host_window(void* pointer, std::size_t bytes) noexcept {
  const auto ask = context_.driver().mem_get_handle_for_address_range;
  if (ask == nullptr) return Status::not_supported;
  int file = -1;
  const Status asked = beside_captures(context_, "cuMemGetHandleForAddressRange", [&] {
    return ask(&file, address(pointer), bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  });
  if (asked != Status::ok) return asked == Status::invalid_argument ? asked : Status::not_supported;
  const UniqueFd closed_again(file);
  void* const window = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (window != MAP_FAILED) return window;
  log::info("the CPU cannot map memory of '{}': mmap of its dma-buf: {}. Drivers of CUDA 13.3 and later let it",
            capabilities_.name, std::strerror(errno));
  return Status::not_supported;
}

void CudaDevice::close_host_window(void* window, std::size_t bytes) noexcept { ::munmap(window, bytes); }

}  // namespace brant::port::memory
