#pragma once

#include <vector>

#include "cli/doctor/checks.h"

namespace brant::cli::doctor {

/// Starts two processes that exchange 8 bytes and 1 MiB and look at every byte: in host memory, and between two GPUs
/// where there are two. A second or two; bounded by half a minute each.
std::vector<Finding> run_self_tests(const Facts& facts);

}  // namespace brant::cli::doctor
