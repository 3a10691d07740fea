#include "cli/calibrate/rings.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

#include "bench/notify/kernels.h"
#include "bench/runner/statistics.h"
#include "bench/runner/us_since.h"

namespace brant::cli::calibrate {
namespace {

using Clock = std::chrono::steady_clock;
using simt::Word;

constexpr Word kRounds = 500;
constexpr std::chrono::seconds kPatience{5};

void require(Status status, const char* what) {
  if (status != Status::ok) throw Error(status, what);
}

/// From the CPU to a kernel and back.
double round_trip_us(Runtime& runtime, Notifier& notifier, bench::NotifyKernels& kernels) {
  Bell go = notifier.make({.rung_by = RungBy::host, .seen_by = SeenBy::device});
  Bell back = notifier.make();
  auto kernel = PersistentKernel::launch(notifier, kernels.echo, {}, {.name = "echo", .patience = kPatience},
                                         go.device(), back.device(), kRounds, bench::notify_steps::Witness{}, Word{0});
  require(runtime.wait(kernel.started()).status, "calibrate: the kernel that answers rings does not run");
  std::vector<double> us(kRounds);
  for (Word epoch = 1; epoch <= kRounds; ++epoch) {
    const auto begin = Clock::now();
    require(go.ring(epoch), "calibrate: a ring");
    while (static_cast<std::int64_t>(back.epoch() - epoch) < 0) {
      if (Clock::now() - begin > kPatience)
        throw Error(Status::timed_out, "calibrate: a kernel does not answer a ring");
    }
    us[epoch - 1] = bench::us_since(begin);
  }
  require(runtime.wait(kernel.ended()).status, "calibrate: the kernel that answers rings");
  return bench::summarize(us).p50;
}

/// A look of a kernel at a bell of the host: what the CPU rings is seen about that much later.
double look_us(Runtime& runtime, Notifier& notifier, bench::NotifyKernels& kernels) {
  Bell seen = notifier.make({.rung_by = RungBy::host, .seen_by = SeenBy::device});
  Bell rung = notifier.make();
  Memory results = runtime.allocate(runtime.device_kind(), bench::notify_steps::kCosts * sizeof(Word));
  auto kernel = PersistentKernel::launch(notifier, kernels.cost, {}, {.name = "cost", .patience = kPatience},
                                         seen.device(), rung.device(), kRounds, static_cast<Word*>(results.data()));
  require(runtime.wait(kernel.ended()).status, "calibrate: the kernel that looks at a bell");
  std::vector<Word> ns(bench::notify_steps::kCosts);
  runtime.copy(std::span(ns), results);
  return static_cast<double>(ns[bench::notify_steps::kLooks]) / 1e3 / static_cast<double>(kRounds);
}

}  // namespace

bench::model::NotifyParameters measure_rings(Runtime& runtime) {
  Notifier notifier(runtime, {.patience = kPatience});
  bench::NotifyKernels kernels(runtime.device());
  const double both = round_trip_us(runtime, notifier, kernels);
  const double look = std::min(look_us(runtime, notifier, kernels), both);
  return {both - look, look};
}

}  // namespace brant::cli::calibrate
