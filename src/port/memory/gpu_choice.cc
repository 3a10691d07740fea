#include "port/memory/gpu_choice.h"

#include <fmt/format.h>

namespace brant::port::memory {
namespace {

[[noreturn]] void refuse(Status status, const std::string& text) { throw Error(status, text); }

std::string counted(std::size_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace

int choose_gpu(const DeviceRequest& request, const GpuScene& scene) {
  if (request.local_size < 1 || request.local_rank < 0 || request.local_rank >= request.local_size) {
    refuse(Status::invalid_argument,
           fmt::format("local rank {} of {} processes: no such process", request.local_rank, request.local_size));
  }
  const auto gpus = static_cast<int>(scene.gpus);
  if (request.ordinal >= gpus) {
    refuse(Status::not_found, fmt::format("GPU {} was asked for, but this process sees only {} (numbered from 0; "
                                          "CUDA_VISIBLE_DEVICES renumbers them)",
                                          request.ordinal, counted(scene.gpus, "GPU", "GPUs")));
  }
  if (request.ordinal >= 0) return request.ordinal;
  if (scene.assigned) return 0;
  if (request.local_size > gpus && !request.share_gpu) {
    refuse(Status::limit_reached,
           fmt::format(
               "{} on this host but {}: start at most {} per host, or set BRANT_SHARE_GPU=1 to share (about 150 us per "
               "operation, time slicing)",
               counted(static_cast<std::size_t>(request.local_size), "process", "processes"),
               counted(scene.gpus, "GPU", "GPUs"), counted(scene.gpus, "process", "processes")));
  }
  return request.local_rank % gpus;
}

}  // namespace brant::port::memory
