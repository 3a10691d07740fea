#pragma once

#include <optional>
#include <string>
#include <vector>

#include "brant/brant.h"
#include "decomposition.h"
#include "exchange.h"

namespace heat {

/// What the command line said, checked as far as it can be without knowing the job.
struct Options {
  Extent size{64, 64, 64};
  std::int64_t steps = 1000;
  std::int64_t warmup = 10;  ///< Of them, those at the start which no figure counts.
  std::int64_t print = 100;
  std::int64_t reduce = 0;  ///< So often, besides where something is printed; 0: never.
  std::vector<Mode> modes{Mode::one_sided};
  std::optional<brant::MemoryKind> memory;  ///< Nothing: the device's kind, or host.
  bool needs_device = false;                ///< Of whatever kind.
  bool check = false;
  bool histogram = false;
  std::string json;

  /// As the paper has it: a step ends with the sum over all processes, and its time says so.
  [[nodiscard]] bool every_step_reduces() const noexcept { return reduce == 1; }
};

/// Parses. Nothing: the program has done what was asked (--help) or said what is wrong, and ends with `exit_code`.
std::optional<Options> parse_options(int argc, char** argv, int& exit_code);

/// The device that these options need. Follows BRANT_GPU where they leave it open.
brant::RuntimeOptions runtime_options(const Options& options);

}  // namespace heat
