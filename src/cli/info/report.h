#pragma once

#include <string>
#include <vector>

#include "port/memory/adapters.h"
#include "port/memory/gpu_topology.h"

namespace brant::cli::info {

/// One way bytes can go between two processes of this host.
struct PathReport {
  std::string name;                ///< "ucx", "shm", "staged"
  std::vector<std::string> kinds;  ///< Memory kinds it carries here.
  std::string reason;              ///< Why it does not carry the others, or nothing at all.
};

/// What brant found on this machine.
struct Report {
  std::string version;
  std::string host;
  std::string cpu;
  int cores = 1;
  std::string launcher;

  std::string ucx_version;  ///< Empty: none, and `ucx_reason` says why.
  std::string ucx_path;
  std::string ucx_reason;
  std::vector<std::string> ucx_transports;  ///< "posix", "tcp(eth0)"
  std::string ucx_transports_reason;
  std::vector<std::string> ucx_kinds;

  port::memory::CudaProbe cuda;
  port::memory::GpuTopology topology;
  std::string device;              ///< What a Runtime of this process would use, and why: "host memory: no GPU here".
  std::vector<std::string> kinds;  ///< What `Runtime::allocate` offers to a process that asks for the device.
  std::vector<PathReport> paths;
};

/// Looks at everything; what is missing is a reason in the report, not an error. Some hundred ms with a GPU, no context
/// on it.
Report make_report();

std::string to_text(const Report& report);
std::string to_json(const Report& report);

/// Who started this process: "brant run", "PMIx", "nobody (a job of one process)", or what is wrong with it.
std::string detect_launcher();

}  // namespace brant::cli::info
