#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "port/memory/gpu_topology.h"

namespace brant::cli::info {

/// Which GPU reaches which and over what, as a matrix like that of `nvidia-smi topo -m`, with a legend of the signs
/// that occur, what cannot be mapped and why, and what could not be found out. Lines without an end of line at the
/// last; empty with fewer than two GPUs and nothing to say.
std::string gpu_matrix(const port::memory::GpuTopology& topology);

/// An array with an object for each ordered pair; what is unknown is null.
nlohmann::ordered_json gpu_links_json(const port::memory::GpuTopology& topology);

}  // namespace brant::cli::info
