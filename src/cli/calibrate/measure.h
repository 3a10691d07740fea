#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "bench/runner/session.h"
#include "core/paths/calibration.h"

namespace brant::cli::calibrate {

/// All that are measured, in the order of tables.
inline constexpr Path kPaths[] = {Path::shm, Path::courier, Path::copy_engine, Path::ucx, Path::staged};

/// What the choice of paths is measured at.
inline constexpr std::array<std::size_t, 8> kPathSizes = {8,         1 << 10, 8 << 10, 32 << 10,
                                                          128 << 10, 1 << 20, 4 << 20, 16 << 20};

/// How thoroughly paths are measured.
struct Effort {
  std::span<const std::size_t> sizes = kPathSizes;  ///< Ascending.
  int turns = 3;  ///< All paths take turns so often, and the best median counts: a slow moment of the machine
                  ///< hits one turn of each.
  double budget_us = 20'000;  ///< Of one path and size in one turn.
};

/// What was found out about this machine.
struct Findings {
  Calibration calibration;
  std::size_t courier_bytes = 0;   ///< Largest message of the device's courier; 0: none.
  bool busy = false;               ///< Others used the cores meanwhile: the numbers may be theirs.
  std::vector<std::string> notes;  ///< What was not measured, and why; what to doubt.
};

/// Ping-pong over each path of host memory from elsewhere, over that of memory that the receiver maps, and of the
/// device's where there is one, at eight sizes or others: some seconds. Collective, of processes of one host; the
/// first pair measures while others wait. The findings are rank 0's, and nothing elsewhere. Throws Error.
Findings measure_paths(bench::Session& session, const Effort& effort = {});

}  // namespace brant::cli::calibrate
