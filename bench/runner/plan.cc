#include "bench/runner/plan.h"

#include <algorithm>

namespace brant::bench {
namespace {

constexpr std::size_t kRounds = 5;

struct Step {
  std::size_t up_to;  ///< Message size in bytes.
  std::size_t latency;
  std::size_t bandwidth;
  std::size_t checked;
};

constexpr Step kSteps[] = {
    {std::size_t{8} << 10, 10'000, 500, 32}, {std::size_t{64} << 10, 4'000, 200, 16},
    {std::size_t{1} << 20, 1'000, 50, 8},    {std::size_t{4} << 20, 200, 20, 4},
    {std::size_t{64} << 20, 50, 10, 2},      {~std::size_t{0}, 5, 2, 1},
};

}  // namespace

Plan plan_for(const Options& options, std::size_t bytes) noexcept {
  const Step& step =
      *std::find_if(std::begin(kSteps), std::end(kSteps), [bytes](const Step& each) { return bytes <= each.up_to; });
  const bool latency = options.kind == Kind::latency;
  Plan plan;
  plan.iterations = options.iterations != 0 ? options.iterations : latency ? step.latency : step.bandwidth;
  plan.warmup =
      options.warmup >= 0 ? static_cast<std::size_t>(options.warmup) : std::max<std::size_t>(plan.iterations / 10, 2);
  plan.rounds = options.rival != Rival::none ? std::min(kRounds, plan.iterations) : 1;
  plan.checked = latency ? step.checked : std::max<std::size_t>(step.checked / 8, 1);
  return plan;
}

}  // namespace brant::bench
