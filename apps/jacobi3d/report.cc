#include "report.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "brant/device.h"

namespace jacobi {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kColumns = 8;
using Row = std::array<std::string, kColumns>;

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

/// Rows are read by people too: six significant digits.
double rounded(double value) noexcept {
  if (value == 0.0 || !std::isfinite(value)) return 0.0;
  const double unit = std::pow(10.0, 5.0 - std::floor(std::log10(std::fabs(value))));
  return std::round(value * unit) / unit;
}

/// Why `run` has no speed-up over `staged`; empty if it has one.
std::string incomparable(const RunReport& run, const RunReport* staged) {
  if (staged == nullptr) return "there is no run to compare with";
  if (run.halo_bytes == 0) return "One process exchanges nothing: no speed-up is given.";
  if (!brant::host_accessible(run.memory)) return {};
  return fmt::format("In {} memory there is nothing to stage: 'staged' is the plain send, so no speed-up is given.",
                     brant::memory_kind_name(run.memory));
}

/// How many times longer `staged` took; communication of a run that exchanges takes some time.
double speedup(double staged, double run) noexcept { return staged / std::max(run, 1e-3); }

/// "shm", or where faces go different ways "courier 67 %, ucx 33 %". Headers of messages are too few to be named.
std::string path_text(const RunReport& run) {
  constexpr double kWorthNaming = 0.05;
  double all = 0;
  for (const double bytes : run.path_bytes) all += bytes;
  std::string text;
  int named = 0;
  for (std::size_t path = 0; path < run.path_bytes.size(); ++path) {
    const double share = run.path_bytes[path] / std::max(all, 1.0);
    if (share < kWorthNaming) continue;
    text += fmt::format("{}{} {:.0f} %", named++ == 0 ? "" : ", ", brant::path_name(static_cast<brant::Path>(path)),
                        share * 100);
  }
  return named > 1 ? text : run.path;
}

Row row_of(const RunReport& run, const RunReport* staged) {
  std::string communication = "-";
  std::string iteration = "-";
  if (incomparable(run, staged).empty()) {
    communication = fmt::format("{:.2f} x", speedup(staged->timing.communication, run.timing.communication));
    iteration = fmt::format("{:.2f} x", speedup(staged->timing.iteration, run.timing.iteration));
  }
  const std::string fraction =
      run.overlap || run.chares > 1
          ? std::string("-")
          : fmt::format("{:.1f} % of {:.1f}", run.bandwidth_fraction() * 100, run.copy_bandwidth / 1e9);
  return {path_text(run),
          fmt::format("{:.1f}", run.timing.iteration),
          fmt::format("{:.1f}", run.timing.compute),
          fmt::format("{:.1f}", run.timing.communication),
          fmt::format("{:.3f}", run.halo_bytes / 1e6),
          fraction,
          communication,
          iteration};
}

float at_share(const std::vector<float>& sorted, double share) noexcept {
  if (sorted.empty()) return 0.0f;
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

Json json_of(const PathBytes& bytes) {
  Json json = Json::object();
  for (std::size_t path = 0; path < bytes.size(); ++path) {
    if (bytes[path] == 0) continue;
    json[brant::path_name(static_cast<brant::Path>(path))] = static_cast<std::int64_t>(bytes[path]);
  }
  return json;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) return line.substr(line.find(": ") + 2);
  }
  return "unknown";
}

}  // namespace

Machine Machine::of(brant::Runtime& runtime) {
  Machine machine;
  const brant::DeviceInfo device = runtime.device().info();
  if (runtime.device_kind() != brant::MemoryKind::host) machine.gpu = device.name;
  if (runtime.device_kind() == brant::MemoryKind::cuda) machine.cuda = device.driver;
  const std::string& network = runtime.network();  // "UCX 1.22.0 (path)"
  if (network.starts_with("UCX ")) machine.ucx = network.substr(4, network.find(" (") - 4);
  machine.cpu = cpu_name();
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) machine.host = name.data();
  return machine;
}

std::string main_path(const PathBytes& bytes) {
  const auto most = std::max_element(bytes.begin(), bytes.end());
  return *most == 0 ? "none" : std::string(brant::path_name(static_cast<brant::Path>(most - bytes.begin())));
}

std::string table(const std::vector<RunReport>& runs, const RunReport* staged) {
  std::vector<Row> rows = {{"path", "iteration us", "compute us", "communication us", "halo MB",
                            "bandwidth, of a copy GB/s", "communication", "iteration"}};
  for (const RunReport& run : runs) rows.push_back(row_of(run, staged));
  if (staged == nullptr) {
    for (Row& row : rows) row[6] = row[7] = "";
  }
  std::array<std::size_t, kColumns> width{};
  for (const Row& row : rows) {
    for (std::size_t column = 0; column < kColumns; ++column)
      width[column] = std::max(width[column], row[column].size());
  }
  std::string text;
  for (const Row& row : rows) {
    text += fmt::format("{:<{}}", row[0], width[0]);
    for (std::size_t column = 1; column < kColumns; ++column) {
      if (width[column] > 0) text += fmt::format("  {:>{}}", row[column], width[column]);
    }
    text += '\n';
  }
  if (staged == nullptr) return text;
  const std::string why = incomparable(runs.front(), staged);
  return text +
         (why.empty() ? "The last two columns are speed-ups over 'staged' (device to host, send, host to device)."
                      : why) +
         '\n';
}

std::string json_row(const RunReport& run, const RunReport* staged, const Machine& machine) {
  std::vector<float> sorted = run.timing.samples;
  std::sort(sorted.begin(), sorted.end());
  const Extent& blocks = run.decomposition.blocks;
  const Extent& global = run.decomposition.global;
  Json json;
  json["bench"] = "jacobi3d";
  json["model"] = run.model == Model::message ? "message" : "channel";
  json["memory"] = brant::memory_kind_name(run.memory);
  json["trigger"] = "host";
  json["path"] = run.path;
  json["path_bytes"] = json_of(run.path_bytes);
  json["bytes"] = static_cast<std::int64_t>(run.halo_bytes);
  json["window"] = 1;
  json["ranks"] = run.decomposition.processes() / run.chares;
  json["n"] = run.iterations;
  json["us"] = {{"min", rounded(at_share(sorted, 0.0))},
                {"p50", rounded(at_share(sorted, 0.5))},
                {"p99", rounded(at_share(sorted, 0.99))}};
  json["gb_s"] = run.timing.communication > 0 ? rounded(run.halo_bytes / run.timing.communication / 1e3) : 0.0;
  json["peer"] = nullptr;
  json["brant"] = BRANT_BUILD_VERSION;
  json["ucx"] = text_or_null(machine.ucx);
  json["cuda"] = text_or_null(machine.cuda);
  json["gpu"] = text_or_null(machine.gpu);
  json["cpu"] = machine.cpu;
  json["host"] = machine.host;
  json["cells"] = {global.x, global.y, global.z};
  json["grid"] = {blocks.x, blocks.y, blocks.z};
  json["overlap"] = run.overlap;
  json["chares"] = run.chares;
  json["per_iteration_us"] = rounded(run.timing.iteration);
  json["compute_us"] = rounded(run.timing.compute);
  json["communication_us"] = rounded(run.timing.communication);
  json["halo_bytes"] = static_cast<std::int64_t>(run.halo_bytes);
  json["copy_gb_s"] = rounded(run.copy_bandwidth / 1e9);
  json["memory_bandwidth_fraction"] =
      run.overlap || run.chares > 1 ? Json(nullptr) : Json(rounded(run.bandwidth_fraction()));
  json["residual"] = run.residual;
  json["speedup_vs_staged"] = nullptr;
  if (incomparable(run, staged).empty()) {
    json["speedup_vs_staged"] = {
        {"communication", rounded(speedup(staged->timing.communication, run.timing.communication))},
        {"iteration", rounded(speedup(staged->timing.iteration, run.timing.iteration))}};
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void append_line(const std::string& file, const std::string& line) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const std::string whole = line + "\n";
  const ssize_t written = fd < 0 ? -1 : ::write(fd, whole.data(), whole.size());
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (written == static_cast<ssize_t>(whole.size())) return;
  throw brant::Error(
      brant::Status::io_error,
      fmt::format("--json {}: {}", file, written < 0 ? std::generic_category().message(error) : "the disk is full"));
}

}  // namespace jacobi
