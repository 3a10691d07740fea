#include "report.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "brant/device.h"

namespace jacobi {
namespace {

using Json = nlohmann::ordered_json;

std::string name_of(std::size_t path) { return std::string(brant::path_name(static_cast<brant::Path>(path))); }

/// Why `run` has no speed-up over `staged`; empty if it has one.
std::string incomparable(const Report& run, const Report* staged) {
  if (staged == nullptr) return "there is no run to compare with";
  if (run.halo_bytes == 0) return "One process exchanges nothing: no speed-up is given.";
  if (!brant::host_accessible(run.memory)) return {};
  return fmt::format("In {} memory there is nothing to stage: 'staged' is the plain send, so no speed-up is given.",
                     brant::memory_kind_name(run.memory));
}

/// "shm", or where faces go different ways "courier 67 %, ucx 33 %". Headers of messages are too few to be named.
std::string path_text(const Report& run) {
  double all = 0;
  for (const double bytes : run.path_bytes) all += bytes;
  std::vector<std::string> named;
  for (std::size_t path = 0; path < run.path_bytes.size(); ++path) {
    const double share = run.path_bytes[path] / std::max(all, 1.0);
    if (share >= 0.05) named.push_back(fmt::format("{} {:.0f} %", name_of(path), share * 100));
  }
  return named.size() > 1 ? fmt::format("{}", fmt::join(named, ", ")) : run.path();
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) return line.substr(line.find(": ") + 2);
  }
  return "unknown";
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

/// Versions and machine, as in every row of a benchmark.
void describe_machine(Json& json, brant::Runtime& runtime) {
  const brant::DeviceInfo device = runtime.device().info();
  const std::string& network = runtime.network();  // "UCX 1.22.0 (path)"
  char host[256] = {};
  static_cast<void>(::gethostname(host, sizeof host - 1));
  json["brant"] = BRANT_BUILD_VERSION;
  json["ucx"] = text_or_null(network.starts_with("UCX ") ? network.substr(4, network.find(" (") - 4) : "");
  json["cuda"] = text_or_null(runtime.device_kind() == brant::MemoryKind::cuda ? device.driver : "");
  json["gpu"] = text_or_null(runtime.device_kind() == brant::MemoryKind::host ? "" : device.name);
  json["cpu"] = cpu_name();
  json["host"] = host;
}

}  // namespace

std::string Report::path() const {
  const auto most = std::max_element(path_bytes.begin(), path_bytes.end());
  return *most == 0 ? "none" : name_of(static_cast<std::size_t>(most - path_bytes.begin()));
}

double Report::bandwidth_fraction() const noexcept {
  if (options.plan.overlap || options.chares_per_process > 1) return 0;
  const double cells = static_cast<double>(volume(cut.global)) / cut.processes();
  return cells * 2 * sizeof(double) / std::max(mean.compute, 1e-3) * 1e6 / std::max(copy_bandwidth, 1.0);
}

std::string table(const std::vector<Report>& runs, const Report* staged) {
  const std::string why = incomparable(runs.front(), staged);
  const auto line = [&](const auto& path, const auto& iteration, const auto& compute, const auto& communication,
                        const auto& halo, const auto& share, const auto&... speedups) {
    std::string text = fmt::format("{:<22}  {:>12}  {:>10}  {:>16}  {:>9}  {:>26}", path, iteration, compute,
                                   communication, halo, share);
    if (why.empty()) ((text += fmt::format("  {:>13}", speedups)), ...);
    return text + '\n';
  };
  std::string text = line("path", "iteration us", "compute us", "communication us", "halo MB",
                          "bandwidth, of a copy GB/s", "communication", "iteration");
  const auto rounded = [](double value, int digits = 1) { return fmt::format("{:.{}f}", value, digits); };
  for (const Report& run : runs) {
    const double fraction = run.bandwidth_fraction();
    const Solution& base = why.empty() ? staged->mean : run.mean;
    text += line(path_text(run), rounded(run.mean.iteration), rounded(run.mean.compute),
                 rounded(run.mean.communication), rounded(run.halo_bytes / 1e6, 3),
                 fraction > 0 ? fmt::format("{:.1f} % of {:.1f}", fraction * 100, run.copy_bandwidth / 1e9) : "-",
                 rounded(base.communication / run.mean.communication, 2) + " x",
                 rounded(base.iteration / run.mean.iteration, 2) + " x");
  }
  if (staged == nullptr) return text;
  const char* meaning = "The last two columns are speed-ups over 'staged' (device to host, send, host to device).";
  return text + (why.empty() ? meaning : why) + '\n';
}

std::string json_row(const Report& run, const Report* staged, brant::Runtime& runtime) {
  std::vector<double> samples = run.mean.samples;
  std::sort(samples.begin(), samples.end());
  const auto at_share = [&](double share) {  // by nearest rank
    const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(samples.size())));
    return samples[std::max<std::size_t>(rank, 1) - 1];
  };
  const Extent& global = run.cut.global;
  const Extent& blocks = run.cut.blocks;
  Json json;
  json["bench"] = "jacobi3d";
  json["model"] = run.options.messages ? "message" : "channel";
  json["memory"] = brant::memory_kind_name(run.memory);
  json["trigger"] = "host";
  json["path"] = run.path();
  json["path_bytes"] = Json::object();
  for (std::size_t path = 0; path < run.path_bytes.size(); ++path) {
    if (run.path_bytes[path] > 0) json["path_bytes"][name_of(path)] = run.path_bytes[path];
  }
  json["bytes"] = run.halo_bytes;
  json["window"] = 1;
  json["ranks"] = runtime.size();
  json["n"] = run.options.plan.iterations;
  json["us"] = {{"min", samples.front()}, {"p50", at_share(0.5)}, {"p99", at_share(0.99)}};
  json["gb_s"] = run.halo_bytes / run.mean.communication / 1e3;
  json["peer"] = nullptr;
  describe_machine(json, runtime);
  json["cells"] = {global.x, global.y, global.z};
  json["grid"] = {blocks.x, blocks.y, blocks.z};
  json["overlap"] = run.options.plan.overlap;
  json["chares"] = run.options.chares_per_process;
  json["per_iteration_us"] = run.mean.iteration;
  json["compute_us"] = run.mean.compute;
  json["communication_us"] = run.mean.communication;
  json["copy_gb_s"] = run.copy_bandwidth / 1e9;
  json["memory_bandwidth_fraction"] = run.bandwidth_fraction() > 0 ? Json(run.bandwidth_fraction()) : Json(nullptr);
  json["residual"] = run.mean.residual;
  json["speedup_vs_staged"] = nullptr;
  if (incomparable(run, staged).empty()) {
    json["speedup_vs_staged"] = {{"communication", staged->mean.communication / run.mean.communication},
                                 {"iteration", staged->mean.iteration / run.mean.iteration}};
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace jacobi
