#include <cstddef>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/info/gpu_matrix.h"
#include "cli/info/report.h"

namespace brant::cli::info {
namespace {

using Json = nlohmann::ordered_json;
using port::memory::CudaDeviceSummary;

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// Further lines of `text` stand below its first.
std::string line(std::string_view name, std::string_view text) {
  std::string result = fmt::format("{:<12} ", name);
  for (const char c : text) {
    result += c;
    if (c == '\n') result.append(13, ' ');
  }
  return result + "\n";
}

std::string gpu_text(const CudaDeviceSummary& gpu) {
  return fmt::format("{}  {:.0f} GiB, compute {}.{}, pci {}, {}{}", gpu.name,
                     static_cast<double>(gpu.memory_bytes) / kGib, gpu.compute_major, gpu.compute_minor, gpu.pci_bus_id,
                     gpu.uuid, gpu.mig ? ", MIG slice: shares no memory with other processes" : "");
}

std::string ucx_text(const Report& report) {
  if (report.ucx_version.empty()) return line("UCX", "none: " + report.ucx_reason);
  std::string text = line("UCX", fmt::format("{} from {}", report.ucx_version, report.ucx_path));
  if (!report.ucx_reason.empty()) return text + line("", "does not start: " + report.ucx_reason);
  text += line("", "transports: " + (report.ucx_transports.empty() ? "unknown: " + report.ucx_transports_reason
                                                                   : joined(report.ucx_transports)));
  return text + line("", "memory: " + joined(report.ucx_kinds));
}

/// `mig_on`: nothing where nobody tells.
Json gpu_json(const CudaDeviceSummary& gpu, std::optional<bool> mig_on) {
  return {{"ordinal", gpu.ordinal},
          {"name", gpu.name},
          {"uuid", gpu.uuid},
          {"pci", gpu.pci_bus_id},
          {"memory_bytes", gpu.memory_bytes},
          {"compute", fmt::format("{}.{}", gpu.compute_major, gpu.compute_minor)},
          {"mig", gpu.mig},
          {"mig_on", mig_on ? Json(*mig_on) : Json(nullptr)}};
}

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

std::string to_text(const Report& report) {
  std::string text = line("brant", report.version);
  text += line("host", fmt::format("{}: {}", report.host, report.cpu));
  text += line("started by", report.launcher);
  text += ucx_text(report);
  text += line("CUDA", report.cuda.driver.empty() ? "no driver" : report.cuda.driver);
  if (report.cuda.devices.empty()) text += line("GPUs", "none: " + report.cuda.reason);
  for (const CudaDeviceSummary& gpu : report.cuda.devices)
    text += line(fmt::format("GPU {}", gpu.ordinal), gpu_text(gpu));
  if (const std::string matrix = gpu_matrix(report.topology); !matrix.empty()) text += line("GPU links", matrix);
  text += line("device", report.device);
  text += line("memory", joined(report.kinds));
  for (const PathReport& path : report.paths) {
    text += line("path " + path.name, (path.kinds.empty() ? "no" : joined(path.kinds)) +
                                          (path.reason.empty() ? "" : "  (" + path.reason + ")"));
  }
  return text;
}

std::string to_json(const Report& report) {
  Json json;
  json["brant"] = report.version;
  json["host"] = report.host;
  json["cpu"] = report.cpu;
  json["cores"] = report.cores;
  json["launcher"] = report.launcher;
  json["ucx"] = {{"version", or_null(report.ucx_version)},
                 {"path", or_null(report.ucx_path)},
                 {"reason", or_null(report.ucx_reason)},
                 {"transports", report.ucx_transports},
                 {"transports_reason", or_null(report.ucx_transports_reason)},
                 {"kinds", report.ucx_kinds}};
  json["cuda"] = {
      {"driver", or_null(report.cuda.driver)}, {"reason", or_null(report.cuda.reason)}, {"gpus", Json::array()}};
  for (std::size_t i = 0; i < report.cuda.devices.size(); ++i) {
    const bool known = i < report.topology.mig.size();
    json["cuda"]["gpus"].push_back(gpu_json(report.cuda.devices[i], known ? report.topology.mig[i] : std::nullopt));
  }
  json["cuda"]["links"] = gpu_links_json(report.topology);
  json["cuda"]["links_unknown"] = report.topology.gaps;
  json["device"] = report.device;
  json["kinds"] = report.kinds;
  json["paths"] = Json::array();
  for (const PathReport& path : report.paths)
    json["paths"].push_back({{"name", path.name}, {"kinds", path.kinds}, {"reason", or_null(path.reason)}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace brant::cli::info
