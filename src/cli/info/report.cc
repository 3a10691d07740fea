#include "cli/info/report.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/env.h"
#include "brant/base/buffer.h"
#include "brant/base/status.h"
#include "brant/core/runtime.h"
#include "cli/info/host.h"
#include "cli/info/version.h"
#include "core/paths/path_choice.h"
#include "ops/courier/courier_options.h"
#include "port/boot/detect.h"
#include "port/boot/select.h"
#include "port/link/shared_memory/open.h"
#include "port/memory/gpu_choice.h"
#include "port/wire/ucx/open.h"
#include "port/wire/ucx/transports.h"

namespace brant::cli::info {
namespace {

std::vector<std::string> kind_names(std::uint32_t kinds) {
  std::vector<std::string> names;
  for (int kind = 1; kind < kMemoryKindCount; ++kind) {
    if ((kinds >> kind) & 1u) names.emplace_back(memory_kind_name(static_cast<MemoryKind>(kind)));
  }
  return names;
}

constexpr std::uint32_t bit(MemoryKind kind) noexcept { return 1u << static_cast<unsigned>(kind); }

/// Transports by name, with the devices of those that have several: "tcp(eth0 lo)".
std::vector<std::string> transport_names(const std::vector<port::UcxTransports::Entry>& entries) {
  std::vector<std::string> order;
  std::vector<std::string> devices;
  for (const port::UcxTransports::Entry& entry : entries) {
    const auto known = std::find(order.begin(), order.end(), entry.transport);
    if (known == order.end()) {
      order.push_back(entry.transport);
      devices.push_back(entry.device);
    } else {
      devices[static_cast<std::size_t>(known - order.begin())] += " " + entry.device;
    }
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (devices[i] != "memory" && devices[i] != "cuda") order[i] += "(" + devices[i] + ")";
  }
  return order;
}

/// The kinds UCX takes.
std::uint32_t describe_ucx(Report& report) {
  try {
    report.ucx_version = port::ucx_version();
    report.ucx_path = port::ucx_library_path();
    const port::UcxTransports transports = port::list_ucx_transports();
    report.ucx_transports = transport_names(transports.entries);
    report.ucx_transports_reason = transports.reason;
    const std::uint32_t kinds = port::open_ucx_wire({})->capabilities().kinds;
    report.ucx_kinds = kind_names(kinds);
    return kinds;
  } catch (const Error& error) {
    report.ucx_reason = error.what();
    return 0;
  }
}

PathReport describe_path(Path path, std::uint32_t offered, std::uint32_t wire_kinds, bool have_wire,
                         bool shares_memory) {
  PathReport report{std::string(path_name(path)), {}, {}};
  if (!have_wire) {
    report.reason = "processes cannot reach each other without UCX";
    return report;
  }
  std::vector<std::pair<std::string, std::string>> refusals;  // reason, kinds
  for (int kind = 1; kind < kMemoryKindCount; ++kind) {
    if (((offered >> kind) & 1u) == 0) continue;
    PathQuery query;
    query.kind = static_cast<MemoryKind>(kind);
    query.wire_takes_kind = (wire_kinds >> kind) & 1u;
    query.shm_open = shares_memory;
    query.peer_maps = shares_memory && (query.kind == MemoryKind::cuda || query.kind == MemoryKind::emulated);
    if (query.peer_maps) query.courier_bytes = CourierOptions::from_environment(query.kind).largest();
    query.forced = path;
    const PathChoice choice = choose_path(query);
    const std::string name(memory_kind_name(query.kind));
    if (choice.status == Status::ok) {
      report.kinds.push_back(name);
      continue;
    }
    const auto known =
        std::find_if(refusals.begin(), refusals.end(), [&](const auto& each) { return each.first == choice.reason; });
    if (known == refusals.end()) {
      refusals.emplace_back(choice.reason, name);
    } else {
      known->second += " " + name;
    }
  }
  for (const auto& [reason, kinds] : refusals)
    report.reason += fmt::format("{}{}: {}", report.reason.empty() ? "" : "; ", kinds, reason);
  return report;
}

/// The GPU of its local rank: of a process that no launcher started, of the first.
std::string own_gpu(const port::memory::CudaProbe& cuda) {
  port::DeviceRequest request;
  request.local_rank = static_cast<int>(env_int("BRANT_LOCAL_RANK").value_or(0));
  request.local_size = request.local_rank + 1;
  request.share_gpu = true;
  const int ordinal = port::memory::choose_gpu(request, {.gpus = cuda.devices.size(), .assigned = false});
  return fmt::format("GPU {} ({}), that of local rank {}", ordinal,
                     cuda.devices[static_cast<std::size_t>(ordinal)].name, request.local_rank);
}

std::string device_in_use(const port::memory::CudaProbe& cuda) {
  try {
    switch (RuntimeOptions::from_environment().gpu) {
      case GpuChoice::none: return "host memory (BRANT_GPU=none)";
      case GpuChoice::emulated: return "emulated by threads (BRANT_GPU=emulated)";
      case GpuChoice::cuda:
        return cuda.devices.empty() ? "none: BRANT_GPU=cuda asks for a GPU, and there is none" : own_gpu(cuda);
      case GpuChoice::automatic: break;
    }
    return cuda.devices.empty() ? "host memory: no GPU here" : own_gpu(cuda);
  } catch (const Error& error) {
    return fmt::format("none: {}", error.what());
  }
}

}  // namespace

std::string detect_launcher() {
  if (const std::string_view forced = env("BRANT_BOOTSTRAP"); !forced.empty())
    return fmt::format("{} (BRANT_BOOTSTRAP)", forced);
  switch (port::detect_starter().starter) {
    case port::Starter::brant_run: return "brant run";
    case port::Starter::pmix: return "PMIx";
    case port::Starter::pmi: return "PMI-1";
    case port::Starter::torchrun: return "torchrun";
    case port::Starter::nobody: return "nobody (a job of one process)";
    case port::Starter::not_spoken: break;
  }
  try {
    static_cast<void>(port::make_boot());
    return {};
  } catch (const Error& error) {
    return error.what();  // which launcher, and what to do
  }
}

Report make_report() {
  Report report;
  report.version = build_version();
  report.host = short_host_name();
  report.cpu = cpu_name();
  report.cores = usable_cores();
  report.launcher = detect_launcher();
  report.cuda = port::memory::probe_cuda();
  report.topology = port::memory::probe_gpu_topology(report.cuda);
  report.device = device_in_use(report.cuda);
  const std::uint32_t wire_kinds = describe_ucx(report);
  std::uint32_t offered = bit(MemoryKind::host) | bit(MemoryKind::pinned) | bit(MemoryKind::emulated);
  if (!report.cuda.devices.empty()) offered |= bit(MemoryKind::cuda) | bit(MemoryKind::cuda_managed);
  report.kinds = kind_names(offered);
  const bool shares_memory = port::open_links(1) != nullptr;
  for (const Path path : {Path::ucx, Path::shm, Path::copy_engine, Path::courier, Path::staged}) {
    report.paths.push_back(describe_path(path, offered, wire_kinds, report.ucx_reason.empty(), shares_memory));
  }
  return report;
}

}  // namespace brant::cli::info
