#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "port/boot/detect.h"

namespace brant::cli::doctor {

/// Everything the checks look at, so that they can be tested with any machine in mind.
struct Facts {
  // UCX.
  std::string ucx_version;  ///< Empty: none is usable, and `ucx_error` says why.
  std::string ucx_path;
  std::string ucx_error;
  std::vector<std::string> ucx_folders;     ///< Folders of all UCX libraries this process has mapped. One is right.
  std::vector<std::string> ucx_transports;  ///< Names; empty if they cannot be asked.
  bool ucx_takes_cuda = false;
  std::vector<std::string> listeners_on_one_host;    ///< TCP addresses of a process in a job of one host,
  std::vector<std::string> listeners_between_hosts;  ///< and in one of several.
  std::string lease_address;                         ///< Where the latter has its UDP port; empty: nowhere.

  // GPUs.
  std::string cuda_driver;  ///< "CUDA 13.0 (driver 580.159)", empty without one.
  std::string cuda_reason;  ///< Why there is no GPU to use; empty if there is one.
  int gpus = 0;
  int mig_slices = 0;
  int nvidia_hardware = 0;                       ///< NVIDIA display or compute devices on the PCI bus.
  std::vector<std::string> device_files_denied;  ///< /dev/nvidia* that exist and may not be opened.
  bool gdrcopy = false;                          ///< /dev/gdrdrv exists.

  // Network and system.
  std::vector<std::string> infiniband;  ///< /sys/class/infiniband/*
  std::uint64_t shm_bytes = 0;          ///< Size of /dev/shm; 0: not mounted.
  std::uint64_t shm_free_bytes = 0;
  std::uint64_t memlock_bytes = 0;  ///< RLIMIT_MEMLOCK; the largest value: no limit.
  int ptrace_scope = -1;            ///< /proc/sys/kernel/yama/ptrace_scope; -1: the kernel has none.
  int pidfd_errno = 0;              ///< Of a trial of pidfd_open.
  int cores = 1;                    ///< That this process may use.

  // Who started this process, and why brant believes it.
  port::Detection starter;
  std::vector<std::pair<std::string, std::string>> environment;
};

/// Looks at this machine and this process. Loads UCX and the CUDA driver, makes no context on a GPU.
Facts gather_facts();

}  // namespace brant::cli::doctor
