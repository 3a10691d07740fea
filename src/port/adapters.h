#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "port/boot.h"
#include "port/link.h"
#include "port/memory.h"
#include "port/wire.h"

namespace brant::port {

/// The outside world of one runtime.
struct Adapters {
  std::unique_ptr<Boot> boot;
  std::unique_ptr<Device> device;
  std::unique_ptr<Wire> wire;
  std::unique_ptr<Links> links;  ///< Null where no memory can be shared, and with a single process.
  bool other_hosts = false;      ///< Some process of the job runs where no kernel call tells when it dies.
};

enum class Gpu { automatic, none, emulated, cuda };

struct AdapterRequest {
  Gpu gpu = Gpu::automatic;
  bool share_gpu = false;  ///< Several processes may use one GPU (about 150 us an operation: time slicing).
  bool sleep = true;       ///< The wire shall be able to wake a sleeping worker.
  std::chrono::milliseconds boot_timeout{60'000};  ///< For the other processes to say where they run.
  bool joining = false;                            ///< Processes that are not of the job may join later,
  bool joining_if_possible = false;                ///< which is given up where there is no network library,
  bool joining_hosts = false;                      ///< also from other hosts.
  int gpu_ordinal = -1;                            ///< -1: that of the local rank.
};

/// Opens what this process was started for: the bootstrap its launcher offers, its GPU, and the network. The order
/// matters: the device's context comes before the network looks for it. Collective in a job of several processes, which
/// first tell each other where they run: those of one host open no network listener. Throws Error.
Adapters open_adapters(const AdapterRequest& request);

}  // namespace brant::port
