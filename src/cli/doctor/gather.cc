#include <fcntl.h>
#include <link.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <limits>

#include "brant/base/status.h"
#include "cli/doctor/facts.h"
#include "cli/doctor/listeners.h"
#include "cli/info/host.h"
#include "core/own_address.h"
#include "port/memory/adapters.h"
#include "port/wire/ucx/open.h"
#include "port/wire/ucx/transports.h"

namespace brant::cli::doctor {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> new_among(std::vector<std::string> all, const std::vector<std::string>& known) {
  std::erase_if(all, [&](const std::string& one) { return std::find(known.begin(), known.end(), one) != known.end(); });
  return all;
}

/// Wires are opened as jobs open them, so that what is open to others is seen and not believed.
void gather_ucx(Facts& facts) {
  try {
    facts.ucx_version = port::ucx_version();
    facts.ucx_path = port::ucx_library_path();
    for (const port::UcxTransports::Entry& entry : port::list_ucx_transports().entries)
      facts.ucx_transports.push_back(entry.transport);
    port::UcxOptions options;
    options.other_hosts = false;
    const std::unique_ptr<port::Wire> one_host = port::open_ucx_wire(options);
    facts.ucx_takes_cuda = one_host->capabilities().takes(MemoryKind::cuda);
    facts.listeners_on_one_host = own_listeners();
    options.other_hosts = true;
    const std::unique_ptr<port::Wire> several_hosts = port::open_ucx_wire(options);
    facts.listeners_between_hosts = new_among(own_listeners(), facts.listeners_on_one_host);
  } catch (const Error& error) {
    facts.ucx_error = error.what();
  }
  const auto add_folder = [](dl_phdr_info* library, std::size_t, void* context) {
    auto& folders = *static_cast<std::vector<std::string>*>(context);
    const fs::path path = library->dlpi_name;
    const std::string file = path.filename().string();
    const bool is_ucx =
        file.rfind("libucp.so", 0) == 0 || file.rfind("libucs.so", 0) == 0 || file.rfind("libuct.so", 0) == 0;
    const std::string folder = path.parent_path().string();
    if (is_ucx && std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(folder);
    return 0;
  };
  ::dl_iterate_phdr(add_folder, &facts.ucx_folders);
}

/// The bus tells of a GPU even where the driver is missing.
int count_nvidia_hardware() {
  int count = 0;
  std::error_code error;
  for (const fs::directory_entry& device : fs::directory_iterator("/sys/bus/pci/devices", error)) {
    const std::string vendor = info::read_file((device.path() / "vendor").string());
    const std::string kind = info::read_file((device.path() / "class").string());
    const bool display = kind.rfind("0x0300", 0) == 0 || kind.rfind("0x0302", 0) == 0;
    if (vendor.rfind("0x10de", 0) == 0 && display) ++count;
  }
  return count;
}

void gather_gpus(Facts& facts) {
  const port::memory::CudaProbe probe = port::memory::probe_cuda();
  facts.cuda_driver = probe.driver;
  facts.cuda_reason = probe.reason;
  facts.gpus = static_cast<int>(probe.devices.size());
  facts.mig_slices = static_cast<int>(
      std::count_if(probe.devices.begin(), probe.devices.end(), [](const auto& gpu) { return gpu.mig; }));
  facts.nvidia_hardware = count_nvidia_hardware();
  facts.gdrcopy = ::access("/dev/gdrdrv", F_OK) == 0;
  for (const char* path : {"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"}) {
    if (::access(path, F_OK) == 0 && ::access(path, R_OK | W_OK) != 0) facts.device_files_denied.emplace_back(path);
  }
}

void gather_system(Facts& facts) {
  struct statvfs shm{};
  if (::statvfs("/dev/shm", &shm) == 0) {
    facts.shm_bytes = std::uint64_t{shm.f_blocks} * shm.f_frsize;
    facts.shm_free_bytes = std::uint64_t{shm.f_bavail} * shm.f_frsize;
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
    facts.memlock_bytes = limit.rlim_cur == RLIM_INFINITY ? std::numeric_limits<std::uint64_t>::max() : limit.rlim_cur;
  }
  const std::string scope = info::read_file("/proc/sys/kernel/yama/ptrace_scope");
  std::from_chars(scope.data(), scope.data() + scope.size(), facts.ptrace_scope);
  const long pidfd = ::syscall(SYS_pidfd_open, ::getpid(), 0);
  facts.pidfd_errno = pidfd < 0 ? errno : 0;
  if (pidfd >= 0) ::close(static_cast<int>(pidfd));
  facts.cores = info::usable_cores();
  std::error_code error;
  for (const fs::directory_entry& device : fs::directory_iterator("/sys/class/infiniband", error)) {
    facts.infiniband.push_back(device.path().filename().string());
  }
}

void gather_environment(Facts& facts) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) facts.environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  std::sort(facts.environment.begin(), facts.environment.end());
}

}  // namespace

Facts gather_facts() {
  Facts facts;
  gather_environment(facts);
  gather_ucx(facts);
  gather_gpus(facts);
  gather_system(facts);
  if (const auto address = own_address()) {
    facts.lease_address = address->text();
    facts.lease_address.resize(facts.lease_address.rfind(':'));  // the port is each process's own
  }
  facts.starter = port::detect_starter();
  return facts;
}

}  // namespace brant::cli::doctor
