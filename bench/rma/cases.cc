#include <algorithm>

#include <fmt/format.h>

#include "bench/rma/rma.h"
#include "brant/base/status.h"

namespace brant::bench {

void require_sense(const RmaBench& bench) {
  if (bench.sizes.empty() || bench.sizes.front() == 0)
    throw Error(Status::invalid_argument, "bench rma: a transfer of no bytes moves nothing; use sizes from 1 on");
  const auto has = [&](RmaSync sync) {
    return std::find(bench.syncs.begin(), bench.syncs.end(), sync) != bench.syncs.end();
  };
  const bool puts =
      std::find(bench.directions.begin(), bench.directions.end(), RmaDirection::put) != bench.directions.end();
  if (has(RmaSync::notify) && !puts)
    throw Error(Status::invalid_argument, "--sync notify: a get tells its target nothing; use --op put");
  if (has(RmaSync::notify) && bench.busy_target)
    throw Error(Status::invalid_argument,
                "--sync notify: a busy target acknowledges nothing; drop --busy-target, or use block, flood or inject");
  const bool device =
      std::any_of(bench.patterns.begin(), bench.patterns.end(), [](RmaPattern each) { return each.needs_device(); });
  if (device && bench.device == GpuChoice::none)
    throw Error(Status::invalid_argument,
                "--device none: patterns with g need a device; use ss, ps or another --device");
}

std::vector<RmaCase> cases_of(const RmaBench& bench, RmaPattern pattern) {
  std::vector<RmaCase> cases;
  for (const RmaDirection direction : bench.directions) {
    for (const RmaSync sync : bench.syncs) {
      if (sync == RmaSync::notify && direction != RmaDirection::put) continue;
      for (const std::size_t bytes : bench.sizes)
        cases.push_back({direction, pattern, sync, bytes, sync == RmaSync::block ? 1 : bench.window});
    }
  }
  return cases;
}

std::optional<bool> waited_for_target(double busy_us, double idle_us, std::chrono::milliseconds busy_span) noexcept {
  const double span_us = std::chrono::duration<double, std::micro>(busy_span).count();
  if (idle_us > span_us / 4) return std::nullopt;
  return busy_us > span_us / 2;
}

}  // namespace brant::bench
