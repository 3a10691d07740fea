#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "port/wire.h"

/// Opens the UCX adapter. This header needs no UCX header, so that storeys above stay free of them.
///
/// UCX is loaded at run time, never linked. BRANT_UCX says which one: `system` (libucp.so.0 by the loader's rules) or a
/// path (the file, its folder, or a prefix). Otherwise: the one this process has mapped already; the one beside the
/// object that contains brant's code, then the wheel of the active Python, if they are new enough and nobody else can
/// write to them; the system's by the loader's rules.
namespace brant::port {

struct UcxOptions {
  /// Asks UCX for wake-up file descriptors (`arm`, `event_fd`). Costs nothing measurable on shared memory.
  bool sleep = true;
  /// Use UCX's own failure reports on this host too (endpoints to other hosts always do). They cost the zero-copy path
  /// (cma): bulk data then passes through the receiver's shared queue, which a process that dies in the act blocks for
  /// good. The core watches same-host peers itself. Must be the same in all processes; see docs/gotchas/ucx.md.
  bool peer_errors_on_same_host = false;
  /// Some peer may run on another host. Without it TCP stays out, unless UCX_TLS says otherwise: UCX opens one listener
  /// per process on every network interface, and has no means to ask who connects.
  bool other_hosts = true;
  /// Accept peers that run another UCX version. UCX may abort the process then; for experiments only.
  bool mixed_versions = false;
  std::size_t endpoints_expected = 1;     ///< How many peers there will be; UCX sizes its choices by it.
  std::size_t requests_max = 65536;       ///< Operations in flight; more return limit_reached.
  std::size_t messages_max = 16384;       ///< Arrived active messages waiting for `deliver`; then `progress` pauses.
  std::size_t am_eager_bytes_max = 8192;  ///< Larger payloads wait at the sender for `am_receive`.
  /// UCX settings, without the UCX_ prefix, that go before brant's defaults. The user's environment goes before both.
  std::vector<std::pair<std::string, std::string>> settings;
};

/// Opens a wire of its own UCX context and worker. 10 to 30 ms. The calling thread owns it.
/// Throws Error: not_found (no usable UCX; the text lists what was tried), version_mismatch (too old), invalid_argument
/// (options), no_memory, io_error (UCX could not open its transports).
std::unique_ptr<Wire> open_ucx_wire(const UcxOptions& options);

/// The version of the UCX that is or would be loaded, for the boot record, for example "1.22.0". Loads it. Throws like
/// open_ucx_wire.
std::string ucx_version();

/// The file it came from. Throws like open_ucx_wire.
std::string ucx_library_path();

}  // namespace brant::port
