#include "cli/doctor/checks.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "base/variables.h"

namespace brant::cli::doctor {
namespace {

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
constexpr std::uint64_t kShmTooSmall = 16 * kMib;  // two processes of UCX need some MiB each
constexpr std::uint64_t kShmSmall = 256 * kMib;
constexpr std::uint64_t kMemlockSmall = 64 * kMib;

Finding ok(std::string name, std::string what) { return {Level::ok, std::move(name), std::move(what), {}}; }
Finding warning(std::string name, std::string what, std::string cure) {
  return {Level::warning, std::move(name), std::move(what), std::move(cure)};
}
Finding problem(std::string name, std::string what, std::string cure) {
  return {Level::problem, std::move(name), std::move(what), std::move(cure)};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

const std::string* variable(const Facts& facts, std::string_view name) {
  for (const auto& [key, value] : facts.environment) {
    if (key == name) return &value;
  }
  return nullptr;
}

bool has_transport(const Facts& facts, std::string_view prefix) {
  return std::any_of(facts.ucx_transports.begin(), facts.ucx_transports.end(),
                     [prefix](const std::string& name) { return name.rfind(prefix, 0) == 0; });
}

std::string mib(std::uint64_t bytes) { return fmt::format("{} MiB", bytes / kMib); }

}  // namespace

const char* level_name(Level level) noexcept {
  switch (level) {
    case Level::ok: return "ok";
    case Level::warning: return "warning";
    case Level::problem: return "problem";
  }
  return "unknown";
}

Finding check_ucx(const Facts& facts) {
  if (!facts.ucx_version.empty() && facts.ucx_error.empty())
    return ok("UCX", fmt::format("{} from {}", facts.ucx_version, facts.ucx_path));
  const std::size_t cure = facts.ucx_error.find("Cure: ");
  const std::string what = facts.ucx_error.substr(0, cure);
  return problem(
      "UCX", (what.empty() ? "no UCX library was found" : what.substr(0, what.find_last_not_of(" \n") + 1)),
      cure != std::string::npos
          ? facts.ucx_error.substr(cure + 6)
          : "without UCX only jobs of one process run: `make setup`, or install a system UCX and set BRANT_UCX=system");
}

Finding check_one_ucx(const Facts& facts) {
  if (facts.ucx_folders.size() <= 1) return ok("UCX copies", "one set of UCX libraries in this process");
  return problem("UCX copies", "this process has mapped several UCX sets: " + joined(facts.ucx_folders),
                 "two sets in one process crash: remove the foreign one from LD_PRELOAD and LD_LIBRARY_PATH");
}

Finding check_cuda(const Facts& facts) {
  if (facts.gpus > 0 && facts.mig_slices == 0)
    return ok("GPUs", fmt::format("{} through {}", facts.gpus, facts.cuda_driver));
  if (facts.gpus > 0) {
    return warning("GPUs",
                   fmt::format("{} through {}, {} of them MIG slices", facts.gpus, facts.cuda_driver, facts.mig_slices),
                   "slices share no memory with other processes: transfers go through the host. Switch MIG off for "
                   "GPU-direct transfers");
  }
  if (!facts.device_files_denied.empty()) {
    return problem("GPUs", "no permission for " + joined(facts.device_files_denied),
                   "join the group that owns the files, or let the administrator open them");
  }
  if (facts.nvidia_hardware > 0) {
    return problem(
        "GPUs",
        fmt::format("{} NVIDIA device{} on the PCI bus, but none to use: {}", facts.nvidia_hardware,
                    facts.nvidia_hardware == 1 ? "" : "s", facts.cuda_reason),
        facts.cuda_driver.empty()
            ? "install NVIDIA's driver; in a container start it with GPU access (--gpus all)"
            : "see the reason; `nvidia-smi` should list the GPU, and brant needs a driver for CUDA 12 or newer");
  }
  if (const std::string* const wish = variable(facts, "BRANT_GPU"); wish != nullptr && *wish == "cuda") {
    return problem("GPUs", fmt::format("BRANT_GPU=cuda asks for one, and there is none ({})", facts.cuda_reason),
                   "unset BRANT_GPU, or set it to 'emulated' to try programs for GPUs");
  }
  return ok("GPUs",
            fmt::format("none on this machine; host memory and the emulated device work ({})", facts.cuda_reason));
}

Finding check_visible_devices(const Facts& facts) {
  const std::string* const value = variable(facts, "CUDA_VISIBLE_DEVICES");
  const std::string name = "CUDA_VISIBLE_DEVICES";
  if (value == nullptr) return ok(name, "not set: each process takes the GPU of its local rank");
  if (facts.nvidia_hardware == 0 && facts.gpus == 0)
    return ok(name, fmt::format("'{}', but there is no GPU anyway", *value));
  if (value->empty() || *value == "-1" || *value == "NoDevFiles") {
    return warning(name, fmt::format("'{}' hides every GPU", *value),
                   "unset it, or name the GPUs: CUDA_VISIBLE_DEVICES=0,1");
  }
  std::vector<std::string> seen;
  for (std::size_t begin = 0; begin <= value->size();) {
    const std::size_t comma = std::min(value->find(',', begin), value->size());
    const std::string entry = value->substr(begin, comma - begin);
    begin = comma + 1;
    const bool number =
        !entry.empty() && std::all_of(entry.begin(), entry.end(), [](char c) { return c >= '0' && c <= '9'; });
    const bool uuid = entry.rfind("GPU-", 0) == 0 || entry.rfind("MIG-", 0) == 0;
    if (!number && !uuid) {
      return problem(name, fmt::format("'{}': the driver stops reading at '{}'", *value, entry),
                     "use numbers or UUIDs with commas and no spaces: 0,1");
    }
    if (std::find(seen.begin(), seen.end(), entry) != seen.end()) {
      return problem(name, fmt::format("'{}' names {} twice: the driver then shows no GPU", *value, entry),
                     "name each GPU once");
    }
    if (number && (entry.size() > 4 || std::stoi(entry) >= std::max(facts.nvidia_hardware, facts.gpus))) {
      return problem(name, fmt::format("'{}': there is no GPU {}, and the driver hides all behind it", *value, entry),
                     fmt::format("use 0 to {}", std::max(facts.nvidia_hardware, facts.gpus) - 1));
    }
    seen.push_back(entry);
  }
  return ok(name, *value);
}

Finding check_ucx_takes_cuda(const Facts& facts) {
  if (facts.gpus == 0 || facts.ucx_version.empty()) return ok("UCX and GPUs", "nothing to ask");
  if (facts.ucx_takes_cuda) return ok("UCX and GPUs", "UCX takes GPU memory directly");
  return problem("UCX and GPUs",
                 fmt::format("UCX {} from {} cannot take GPU memory: it lacks its CUDA modules", facts.ucx_version,
                             facts.ucx_path),
                 "use the UCX that comes with brant (unset BRANT_UCX), or a system UCX built with CUDA; until then "
                 "transfers are staged");
}

Finding check_listeners(const Facts& facts) {
  const std::string name = "open ports";
  if (facts.ucx_version.empty()) return ok(name, "nothing to ask");
  if (!facts.listeners_on_one_host.empty()) {
    return warning(
        name,
        fmt::format("every process listens on {}, in a job of one host too, and UCX asks nobody who connects",
                    joined(facts.listeners_on_one_host)),
        "unset UCX_TLS: without it brant opens no port in a job of one host");
  }
  std::string between =
      facts.listeners_between_hosts.empty()
          ? "no TCP port either"
          : fmt::format("{} (TCP, by UCX, which asks nobody who connects)", joined(facts.listeners_between_hosts));
  if (!facts.lease_address.empty()) between += fmt::format(", and a UDP port at {} for leases", facts.lease_address);
  return ok(name, fmt::format("none in a job of one host; of several, each process has {}: docs/guide/network.md says "
                              "what must isolate them",
                              between));
}

Finding check_gdrcopy(const Facts& facts) {
  if (facts.gpus == 0) return ok("GDRCopy", "no GPU, not needed");
  if (!facts.gdrcopy)
    return ok("GDRCopy",
              "no kernel module (/dev/gdrdrv): small GPU messages go by the copy engine, some microseconds slower");
  if (has_transport(facts, "gdr_copy")) return ok("GDRCopy", "kernel module present and used by UCX");
  return warning("GDRCopy", "the kernel module is loaded, but this UCX was built without GDRCopy",
                 "BRANT_UCX=system, if the system's UCX has gdr_copy (ucx_info -d)");
}

Finding check_infiniband(const Facts& facts) {
  if (facts.infiniband.empty()) return ok("InfiniBand", "no devices: between hosts brant uses TCP");
  const bool used = has_transport(facts, "rc") || has_transport(facts, "dc") || has_transport(facts, "ud");
  if (used) return ok("InfiniBand", joined(facts.infiniband) + ", used by UCX");
  return warning("InfiniBand",
                 fmt::format("{}, but UCX {} was built without verbs", joined(facts.infiniband), facts.ucx_version),
                 "set BRANT_UCX=system to use the system's UCX with InfiniBand between hosts");
}

Finding check_shared_memory(const Facts& facts) {
  const std::string cure =
      "enlarge it: `mount -o remount,size=4G /dev/shm`, or start the container with --shm-size=4g or --ipc=host";
  if (facts.shm_bytes == 0) return problem("/dev/shm", "not mounted: processes of one host cannot share memory", cure);
  const std::string what = fmt::format("{}, {} free", mib(facts.shm_bytes), mib(facts.shm_free_bytes));
  if (facts.shm_free_bytes < kShmTooSmall) return problem("/dev/shm", what + ": too little for UCX", cure);
  if (facts.shm_free_bytes < kShmSmall) return warning("/dev/shm", what + ": enough for a few processes", cure);
  return ok("/dev/shm", what);
}

Finding check_memlock(const Facts& facts) {
  if (facts.memlock_bytes == std::numeric_limits<std::uint64_t>::max()) return ok("memlock", "no limit");
  const std::string what = fmt::format("limit of {} for locked memory (ulimit -l)", mib(facts.memlock_bytes));
  if (facts.infiniband.empty() || facts.memlock_bytes >= kMemlockSmall) return ok("memlock", what);
  return warning("memlock", what + ": InfiniBand registers memory by locking it",
                 "`ulimit -l unlimited`, or a line in /etc/security/limits.conf");
}

Finding check_ptrace(const Facts& facts) {
  if (facts.ptrace_scope <= 0)
    return ok("ptrace scope", facts.ptrace_scope < 0 ? "the kernel does not restrict it"
                                                     : "0: processes of one user may read each other");
  return warning(
      "ptrace scope",
      fmt::format(
          "{}: processes may not read each other's memory; brant does without, but a UCX_TLS with cma would fail",
          facts.ptrace_scope),
      "only if you need cma: `sysctl kernel.yama.ptrace_scope=0`");
}

Finding check_pidfd(const Facts& facts) {
  if (facts.pidfd_errno == 0) return ok("pidfd", "a dead peer is noticed at once");
  return problem("pidfd",
                 fmt::format("pidfd_open fails: {}: the death of a peer on this host goes unnoticed",
                             std::strerror(facts.pidfd_errno)),
                 "use Linux 5.3 or newer; in a container allow the system call pidfd_open in its seccomp profile");
}

Finding check_cores(const Facts& facts) {
  if (facts.cores >= 2)
    return ok("cores", fmt::format("{}: with up to {} processes each one waits spinning, with more they sleep",
                                   facts.cores, facts.cores));
  return warning("cores", "1: processes that talk to each other take turns, so each message costs some 10 us",
                 "allow this job more cores (taskset, the container's CPU limit)");
}

Finding check_launcher(const Facts& facts) {
  std::string evidence;
  for (const std::string& mark : facts.starter.evidence) evidence += (evidence.empty() ? "" : "; ") + mark;
  switch (facts.starter.starter) {
    case port::Starter::brant_run: return ok("launcher", fmt::format("brant run ({})", evidence));
    case port::Starter::pmix: return ok("launcher", fmt::format("a PMIx server ({})", evidence));
    case port::Starter::pmi: return ok("launcher", fmt::format("a launcher that speaks PMI-1 ({})", evidence));
    case port::Starter::torchrun: return ok("launcher", fmt::format("torchrun ({})", evidence));
    case port::Starter::nobody:
      return ok("launcher", fmt::format("nobody: a job of one process ({})",
                                        evidence.empty() ? "no variable of a launcher is set" : evidence));
    case port::Starter::not_spoken: break;
  }
  return warning(
      "launcher", fmt::format("{}, which brant does not speak ({})", facts.starter.launcher, evidence),
      (facts.starter.cure.empty() ? "start with `brant run -n N` on one host, with srun --mpi=pmix, Open MPI's "
                                    "mpirun or torchrun on several"
                                  : facts.starter.cure) +
          "; BRANT_BOOTSTRAP=single runs a process as a job of one");
}

Finding check_brant_variables(const Facts& facts) {
  std::string unknown, hints;
  std::size_t known = 0;
  for (const auto& [name, value] : facts.environment) {
    if (name.rfind("BRANT_", 0) != 0) continue;
    if (!is_unread_variable(name)) {
      ++known;
      continue;
    }
    unknown += (unknown.empty() ? "" : ", ") + name;
    const std::string meant = nearest_variable(name);
    hints +=
        (hints.empty() ? "" : ", ") + (meant.empty() ? "unset " + name : fmt::format("{} instead of {}", meant, name));
  }
  if (unknown.empty())
    return ok("BRANT_*", known == 0 ? "no variables set" : fmt::format("{} set, all of them known", known));
  return warning("BRANT_*", "nobody reads " + unknown, hints);
}

Finding check_ucx_variables(const Facts& facts) {
  std::string set;
  for (const auto& [name, value] : facts.environment) {
    if (name.rfind("UCX_", 0) == 0) set += fmt::format("{}{}={}", set.empty() ? "" : " ", name, value);
  }
  if (set.empty()) return ok("UCX_*", "no variables set: brant's defaults hold");
  return warning("UCX_*", set + ": goes before brant's defaults", "unset them unless you mean it");
}

std::vector<Finding> run_checks(const Facts& facts) {
  std::vector<Finding> findings;
  for (const auto check :
       {check_ucx, check_one_ucx, check_cuda, check_visible_devices, check_ucx_takes_cuda, check_listeners,
        check_gdrcopy, check_infiniband, check_shared_memory, check_memlock, check_ptrace, check_pidfd, check_cores,
        check_launcher, check_brant_variables, check_ucx_variables}) {
    findings.push_back(check(facts));
  }
  return findings;
}

}  // namespace brant::cli::doctor
