#include "port/adapters.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/env.h"
#include "base/log.h"
#include "base/place.h"
#include "port/adapters_via.h"
#include "port/boot/given/given_boot.h"
#include "port/boot/select.h"
#include "port/link/shared_memory/open.h"
#include "port/memory/devices.h"
#include "port/wire/loopback/loopback.h"
#include "port/wire/ucx/open.h"

namespace brant::port {
namespace {

constexpr std::size_t kNeighboursExpected = 64;

DeviceRequest::Gpu device_gpu(Gpu gpu) noexcept {
  switch (gpu) {
    case Gpu::automatic: return DeviceRequest::Gpu::automatic;
    case Gpu::none: return DeviceRequest::Gpu::none;
    case Gpu::emulated: return DeviceRequest::Gpu::emulated;
    case Gpu::cuda: return DeviceRequest::Gpu::cuda;
  }
  return DeviceRequest::Gpu::automatic;
}

/// Whether shared memory reaches every process of the job. All processes get the same answer: if all texts are equal to
/// one of them, they are equal to each. Another namespace of process ids counts as elsewhere: the kernel's copies
/// between processes, and memory handed over through /proc, end at its border.
bool of_one_host(Boot& boot, std::chrono::milliseconds timeout) {
  const JobInfo& job = boot.job();
  if (job.size == 1) return true;
  const auto check = [&](Status status, const char* what) {
    if (status == Status::ok) return;
    throw Error(status, fmt::format("rank {} of {}: the processes could not tell each other where they run: {} failed: "
                                    "{}. {}",
                                    job.rank, job.size, what, status_text(status), boot.last_error()));
  };
  const Place place = own_place();
  const std::string own = place.known ? place.host + "/" + place.pid_namespace : std::string();
  check(boot.put("brant.place", std::as_bytes(std::span(own))), "put");
  check(boot.fence(timeout), "fence");
  if (own.empty()) return false;
  for (int rank = 0; rank < job.size; ++rank) {
    if (rank == job.rank) continue;
    const auto other = boot.get(rank, "brant.place");
    check(other.status(), "get");
    if (!std::ranges::equal(other.value(), std::as_bytes(std::span(own)))) return false;
  }
  return true;
}

std::unique_ptr<Wire> open_wire(const AdapterRequest& request, const JobInfo& job, bool one_host) {
  const std::string_view wanted = env("BRANT_WIRE");
  if (wanted == "loopback") {
    if (job.size == 1) return open_loopback_wire();
    throw Error(Status::invalid_argument,
                fmt::format("BRANT_WIRE=loopback reaches only the own process, but the job has {} processes: unset it",
                            job.size));
  }
  if (!wanted.empty() && wanted != "ucx") {
    throw Error(Status::invalid_argument, fmt::format("BRANT_WIRE={}: use ucx or loopback", wanted));
  }
  UcxOptions options;
  options.sleep = request.sleep;
  options.other_hosts = !one_host || request.joining_hosts;
  // UCX gives up its fast transports above some hundred endpoints, and most programs talk to few neighbours, however
  // many processes there are. The same in all of them: ends that choose by different estimates do not fit together.
  options.endpoints_expected = request.joining
                                   ? kNeighboursExpected
                                   : std::min<std::size_t>(static_cast<std::size_t>(job.size), kNeighboursExpected);
  try {
    return open_ucx_wire(options);
  } catch (const Error& error) {
    // A single process needs no network: a laptop without UCX, or with an old one, still runs every model.
    if (request.joining && !request.joining_if_possible) throw;
    const bool too_old = error.status() == Status::version_mismatch && env("BRANT_UCX").empty();
    if (job.size > 1 || wanted == "ucx" || (error.status() != Status::not_found && !too_old)) throw;
    log::info("no usable UCX, and none is needed for one process: {}", error.what());
    return open_loopback_wire();
  }
}

Adapters open_others(std::unique_ptr<Boot> boot, const AdapterRequest& request) {
  Adapters adapters;
  adapters.boot = std::move(boot);
  const JobInfo& job = adapters.boot->job();
  DeviceRequest device;
  device.gpu = device_gpu(request.gpu);
  device.ordinal = request.gpu_ordinal;
  device.local_rank = job.local_rank;
  device.local_size = job.local_size;
  device.share_gpu = request.share_gpu;
  adapters.device = open_device(device);
  adapters.other_hosts = !of_one_host(*adapters.boot, request.boot_timeout);
  adapters.wire = open_wire(request, job, !adapters.other_hosts);
  if (job.local_size > 1) adapters.links = open_links(static_cast<std::uint32_t>(job.local_size));
  return adapters;
}

}  // namespace

Adapters open_adapters(const AdapterRequest& request) { return open_others(make_boot(), request); }

Adapters open_adapters_via(Exchange& exchange, const AdapterRequest& request) {
  return open_others(open_given_boot(exchange), request);
}

}  // namespace brant::port
