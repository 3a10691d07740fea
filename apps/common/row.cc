#include "row.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include <fmt/format.h>

#include "brant/device.h"

namespace apps {

void describe_machine(Json& row, brant::Runtime& runtime) {
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  const brant::DeviceInfo device = runtime.device().info();
  const std::string& network = runtime.network();  // "UCX 1.22.0 (path)"
  std::string cpu;
  std::ifstream cpus("/proc/cpuinfo");
  while (!cpu.starts_with("model name") && std::getline(cpus, cpu)) continue;
  char host[256] = {};
  static_cast<void>(::gethostname(host, sizeof host - 1));
  row.update({{"brant", BRANT_BUILD_VERSION},
              {"ucx", text_or_null(network.starts_with("UCX ") ? network.substr(4, network.find(" (") - 4) : "")},
              {"cuda", text_or_null(device.kind == brant::MemoryKind::cuda ? device.driver : "")},
              {"gpu", text_or_null(device.kind == brant::MemoryKind::host ? "" : device.name)},
              {"cpu", cpus ? cpu.substr(cpu.find(": ") + 2) : "unknown"},
              {"host", host}});
}

double percentile(std::span<const double> sorted, double share) {
  return sorted[static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size()))) - 1];
}

Json quantiles(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {{"min", samples.front()}, {"p50", percentile(samples, 0.5)}, {"p99", percentile(samples, 0.99)}};
}

std::string name_of_path(std::size_t path) { return std::string(brant::path_name(static_cast<brant::Path>(path))); }

std::string path_of_most(std::span<const double> bytes) {
  const auto most = std::max_element(bytes.begin(), bytes.end());
  return *most == 0 ? "none" : name_of_path(static_cast<std::size_t>(most - bytes.begin()));
}

std::string line_of(const Json& row) { return row.dump(-1, ' ', false, Json::error_handler_t::replace); }

void append_lines(const std::string& file, std::span<const std::string> lines) {
  std::ofstream out(file, std::ios::app);
  for (const std::string& line : lines) out << line + '\n';
  if (!out.flush()) throw brant::Error(brant::Status::io_error, fmt::format("--json {}: could not write it", file));
}

}  // namespace apps
