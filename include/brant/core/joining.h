#pragma once

#include <cstdint>

namespace brant {

/// With whom a process may be joined after its start (Runtime::address, Runtime::join): it decides what the network and
/// the shared memory are opened for. Both processes need it.
enum class Joining : std::uint8_t {
  off,        ///< With nobody.
  this_host,  ///< With processes of this host.
  network,    ///< With processes of other hosts too: the network listens on its interfaces.
};

}  // namespace brant
