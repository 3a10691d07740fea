#pragma once

#include <string>
#include <vector>

#include "brant/core/runtime.h"

namespace brant::cli {

/// What `--device` of benchmarks takes. Without a choice BRANT_GPU has it, as for programs.
inline std::vector<std::string> device_names() { return {"auto", "cuda", "emulated", "none"}; }

/// Of one of those names.
inline GpuChoice device_choice(const std::string& name) noexcept {
  if (name == "cuda") return GpuChoice::cuda;
  if (name == "emulated") return GpuChoice::emulated;
  return name == "none" ? GpuChoice::none : GpuChoice::automatic;
}

}  // namespace brant::cli
