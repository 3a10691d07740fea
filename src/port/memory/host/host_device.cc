#include "port/memory/host/host_device.h"

#include <unistd.h>

#include "port/memory/adapters.h"

namespace brant::port::memory {

HostDevice::HostDevice() {
  capabilities_.name = "host";
  capabilities_.id = "host";
  capabilities_.memory_bytes =
      static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  capabilities_.kinds = kHostKinds;
}

std::unique_ptr<Device> open_host_device() { return std::make_unique<HostDevice>(); }

}  // namespace brant::port::memory
