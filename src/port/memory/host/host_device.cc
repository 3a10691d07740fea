#include "port/memory/host/host_device.h"

#include <unistd.h>

namespace brant::port::memory {

HostDevice::HostDevice() {
  capabilities_.name = "host";
  capabilities_.id = "host";
  capabilities_.memory_bytes =
      static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  capabilities_.kinds = kHostKinds;
}

}  // namespace brant::port::memory
