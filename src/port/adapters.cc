#include "port/adapters.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/env.h"
#include "base/log.h"
#include "port/boot/select.h"
#include "port/memory/devices.h"
#include "port/wire/loopback/loopback.h"
#include "port/wire/peer/open.h"
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

std::unique_ptr<Wire> open_wire(const AdapterRequest& request, const JobInfo& job) {
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
  // UCX gives up its fast transports above some hundred endpoints, and most programs talk to few neighbours, however
  // many processes there are. The same in all of them: ends that choose by different estimates do not fit together.
  options.endpoints_expected = std::min<std::size_t>(static_cast<std::size_t>(job.size), kNeighboursExpected);
  try {
    return open_ucx_wire(options);
  } catch (const Error& error) {
    // A single process needs no network: a laptop without UCX still runs every model.
    if (job.size > 1 || wanted == "ucx" || error.status() != Status::not_found) throw;
    log::info("no UCX, and none is needed for one process: {}", error.what());
    return open_loopback_wire();
  }
}

}  // namespace

Adapters open_adapters(const AdapterRequest& request) {
  Adapters adapters;
  adapters.boot = make_boot();
  const JobInfo& job = adapters.boot->job();
  DeviceRequest device;
  device.gpu = device_gpu(request.gpu);
  device.local_rank = job.local_rank;
  device.local_size = job.local_size;
  device.share_gpu = request.share_gpu;
  adapters.device = open_device(device);
  adapters.wire = open_wire(request, job);
  if (job.local_size > 1) adapters.links = open_peer_links(static_cast<std::uint32_t>(job.local_size));
  return adapters;
}

}  // namespace brant::port
