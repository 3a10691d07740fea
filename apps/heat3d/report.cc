#include "report.h"

#include <fmt/format.h>

#include "histogram.h"
#include "row.h"

namespace heat {
namespace {

using apps::Json;

Json row_of(const Outcome& outcome, const Options& options, brant::Runtime& runtime) {
  const Latency latency(outcome.steps_us);
  const Histogram histogram(latency);
  Json row = {{"bench", "heat3d"},
              {"model", outcome.mode == Mode::one_sided ? "put" : "channel"},
              {"memory", brant::memory_kind_name(outcome.memory)},
              {"trigger", "host"},
              {"path", apps::path_of_most(outcome.path_bytes)},
              {"bytes", outcome.sent_bytes},
              {"window", 1},
              {"ranks", runtime.size()},
              {"n", latency.windows.size()},
              {"us", apps::quantiles(latency.windows)},
              {"gb_s", static_cast<double>(outcome.sent_bytes) / latency.p50 / 1e3},
              {"peer", nullptr}};
  apps::describe_machine(row, runtime);
  row.update({{"mode", name_of(outcome.mode)},
              {"cells", {options.size.x, options.size.y, options.size.z}},
              {"grid", {outcome.blocks.x, outcome.blocks.y, outcome.blocks.z}},
              {"steps", options.steps},
              {"reduce_every", options.reduce > 0 ? Json(options.reduce) : Json(nullptr)},
              {"p99_over_p50", latency.spread()},
              {"average", outcome.average},
              {"histogram",
               {{"from_us", histogram.from},
                {"bin_us", histogram.bin},
                {"counts", histogram.counts},
                {"beyond", histogram.beyond}}}});
  return row;
}

}  // namespace

std::string summary(const Outcome& outcome, const Options& options) {
  const Latency latency(outcome.steps_us);
  std::string text = fmt::format(
      "{}: a step over a window of two, {} windows: median {:.1f} us, p99 {:.1f} us, "
      "p99/p50 {:.3f}\n",
      name_of(outcome.mode), latency.windows.size(), latency.p50, latency.p99, latency.spread());
  return options.histogram ? text + Histogram(latency).bars(latency.p50) : text;
}

void append_rows(const std::vector<Outcome>& outcomes, const Options& options, brant::Runtime& runtime) {
  std::vector<std::string> lines;
  lines.reserve(outcomes.size());
  for (const Outcome& outcome : outcomes) lines.push_back(apps::line_of(row_of(outcome, options, runtime)));
  apps::append_lines(options.json, lines);
}

}  // namespace heat
