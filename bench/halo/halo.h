#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/model/parameters.h"
#include "brant/base/buffer.h"
#include "brant/halo/halo_modes.h"

namespace brant::bench {

/// What the user asked for.
struct HaloBench {
  HaloOptions halo{.grid = {100, 100, 100}, .divide = {0, 0, 0}, .periodic = {true, true, true}, .variables = 3};
  int blocks = 1;  ///< Of each process, where the division is left to brant: all zero.
  std::size_t cycles = 100;
  std::size_t warmup = 10;
  std::size_t batch = 1;  ///< Exchanges of each cycle, whose time is divided by them.
  MemoryKind memory = MemoryKind::host;
  std::vector<HaloMode> modes{HaloMode::fused};  ///< One after another; what is faster is faster than the first.
  bool check = false;  ///< Every cell of every field, in cycles before and after the timed ones.
  std::string json;
  /// Of the machine: beside each measurement goes what the models say of it. Nothing: no model was asked for.
  std::optional<model::Parameters> parameters;
};

struct NamedMessages {
  HaloMessages messages;
  std::string_view name;
};
inline constexpr std::array kHaloMessages = {NamedMessages{HaloMessages::per_process, "process"},
                                             NamedMessages{HaloMessages::per_block, "block"},
                                             NamedMessages{HaloMessages::all, "all"}};

/// The prime factors of `parts`, the largest first, each given to the dimension that has the most cells per part.
std::array<int, 3> divide_evenly(const std::array<std::int64_t, 3>& grid, int parts);

/// Runs it in this job; rank 0 prints. Throws Error.
void run_halo(HaloBench bench);

}  // namespace brant::bench
