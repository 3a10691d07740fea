#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "brant/base/buffer.h"

namespace brant::cli::explain {

/// What the machine has, as far as the choice of a path depends on it.
struct Facts {
  std::string ucx_version;
  std::uint32_t wire_kinds = 0;   ///< Bit (1 << MemoryKind): what the network library takes directly.
  bool shares_memory = false;     ///< Processes of this host can have a shared-memory link.
  std::vector<std::string> gpus;  ///< UUIDs by CUDA's number.
  std::string gpu_reason;         ///< Why there are none.
  std::string cuda_driver;        ///< Empty without one.
  std::size_t courier_bytes = 0;  ///< Largest message of a CUDA courier; 0: switched off.
  std::size_t emulated_courier_bytes = 0;

  [[nodiscard]] bool takes(MemoryKind kind) const noexcept { return (wire_kinds >> static_cast<unsigned>(kind)) & 1u; }
};

/// Looks at this machine; no context on a GPU. Throws Error where there is no network library.
Facts gather_facts();

}  // namespace brant::cli::explain
