#pragma once

#include <string>
#include <vector>

namespace brant::port {

/// What the loaded UCX can use on this machine, for `brant info` and `brant doctor`.
struct UcxTransports {
  struct Entry {
    std::string transport;  ///< "posix", "tcp", "cuda_ipc", "rc_mlx5"
    std::string device;     ///< "memory", "eth0", "mlx5_0:1"
  };
  std::vector<Entry> entries;
  std::string reason;  ///< Why `entries` is empty, in words.
};

/// Asks libuct, the part of UCX that holds the transports. Some milliseconds. Throws Error like open_ucx_wire when
/// there is no UCX.
UcxTransports list_ucx_transports();

}  // namespace brant::port
