#include "report.h"

#include <algorithm>

#include <fmt/format.h>

#include "row.h"

namespace jacobi {
namespace {

const char* name_of(Model model) {
  switch (model) {
    case Model::channel: return "channel";
    case Model::message: return "message";
    case Model::halo: break;
  }
  return "halo";
}

bool comparable(const Report& run, const Report* staged) {
  return staged != nullptr && run.figures.halo_bytes > 0 && !brant::host_accessible(run.memory);
}

}  // namespace

void Figures::join(const Figures& other) noexcept {
  iteration += other.iteration;
  compute += other.compute;
  communication += other.communication;
  halo_bytes = std::max(halo_bytes, other.halo_bytes);
  copy_bandwidth += other.copy_bandwidth;
  for (std::size_t path = 0; path < path_bytes.size(); ++path) path_bytes[path] += other.path_bytes[path];
}

std::string Figures::path() const { return path_of_most(path_bytes); }

double Report::bandwidth_fraction() const noexcept {
  if (options.plan.overlap || options.chares_per_process > 1 || !options.computes) return 0;
  const double cells = static_cast<double>(options.size.x) * static_cast<double>(options.size.y * options.size.z);
  return cells * 2 * sizeof(double) / std::max(figures.compute, 1e-3) * 1e6 / std::max(figures.copy_bandwidth, 1.0);
}

std::string table(const std::vector<Report>& runs, const Report* staged) {
  const bool compares = comparable(runs.front(), staged);
  std::string text = "path         iteration us  compute us  communication us   halo MB  bandwidth, of copies GB/s";
  text += compares ? "  communication    iteration\n" : "\n";
  for (const Report& run : runs) {
    const Figures& mean = run.figures;
    const double share = run.bandwidth_fraction() * 100;
    text += fmt::format("{:<11}  {:>12.1f}  {:>10.1f}  {:>16.1f}  {:>8.3f}  {:>26}", mean.path(), mean.iteration,
                        mean.compute, mean.communication, mean.halo_bytes / 1e6,
                        share > 0 ? fmt::format("{:.1f} % of {:.1f}", share, mean.copy_bandwidth / 1e9) : "-");
    if (compares) {
      text += fmt::format("  {:>11.2f} x  {:>9.2f} x", staged->figures.communication / mean.communication,
                          staged->figures.iteration / mean.iteration);
    }
    text += '\n';
  }
  if (const std::optional<Residual>& residual = runs.front().residual)
    text += fmt::format("Iteration {} changed no cell by more than {:.6g}.\n", residual->iteration, residual->value);
  if (compares) text += "The last two columns are speed-ups over 'staged' (device to host, send, host to device).\n";
  if (compares || staged == nullptr) return text;
  return text +
         "No speed-up is given: one process exchanges nothing, and in host memory there is nothing to stage ('staged' "
         "is the plain send).\n";
}

std::string json_row(const Report& run, const Report* staged, brant::Runtime& runtime) {
  const Figures& mean = run.figures;
  const double share = run.bandwidth_fraction();
  Json json = {{"bench", "jacobi3d"},
               {"model", name_of(run.options.model)},
               {"memory", brant::memory_kind_name(run.memory)},
               {"trigger", "host"},
               {"path", mean.path()},
               {"path_bytes", Json::object()},
               {"bytes", mean.halo_bytes},
               {"window", 1},
               {"ranks", runtime.size()},
               {"n", run.options.plan.iterations},
               {"us", quantiles(run.samples)},
               {"gb_s", mean.halo_bytes / mean.communication / 1e3},
               {"peer", nullptr}};
  for (std::size_t path = 0; path < mean.path_bytes.size(); ++path) {
    if (mean.path_bytes[path] > 0) json["path_bytes"][name_of_path(path)] = mean.path_bytes[path];
  }
  describe_machine(json, runtime);
  json.update(
      {{"cells", {run.options.size.x, run.options.size.y, run.options.size.z}},
       {"grid", {run.blocks.x, run.blocks.y, run.blocks.z}},
       {"halo", run.options.model == Model::halo ? Json(brant::halo_mode_name(run.options.halo)) : Json(nullptr)},
       {"compute", run.options.computes ? "sweep" : "none"},
       {"overlap", run.options.plan.overlap},
       {"chares", run.options.chares_per_process},
       {"per_iteration_us", mean.iteration},
       {"compute_us", mean.compute},
       {"communication_us", mean.communication},
       {"memory_bandwidth_fraction", share > 0 ? Json(share) : Json(nullptr)},
       {"speedup_vs_staged", nullptr}});
  if (run.residual)
    json["residual"] = {{"iteration", run.residual->iteration}, {"largest_change", run.residual->value}};
  if (comparable(run, staged)) {
    json["speedup_vs_staged"] = {{"communication", staged->figures.communication / mean.communication},
                                 {"iteration", staged->figures.iteration / mean.iteration}};
  }
  return line_of(json);
}

}  // namespace jacobi
