#include "support/in_process_job.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "brant/base/clock.h"
#include "core/engine.h"
#include "port/link/shared_memory/open.h"
#include "port/memory/adapters.h"
#include "port/memory/devices.h"
#include "support/emulated_taking_wire.h"
#include "support/wrapped_device.h"

namespace brant::test {
namespace {

/// A device some of whose memory cannot be shared.
class HalfSharedDevice final : public WrappedDevice {
 public:
  HalfSharedDevice(std::unique_ptr<port::Device> inner, const JobOptions& options)
      : WrappedDevice(std::move(inner)), mappable_(options.mappable), exportable_(options.exportable) {}
  Result<port::ExportRecord> export_allocation(const void* pointer) noexcept override {
    if (!may_export(pointer)) return Status::not_supported;
    return WrappedDevice::export_allocation(pointer);
  }
  Result<void*> import_allocation(const port::ExportRecord& record) noexcept override {
    if (mappable_ && !mappable_(record)) return Status::not_supported;
    return WrappedDevice::import_allocation(record);
  }
  Result<port::ExportedFile> export_file(const void* pointer) noexcept override {
    if (!may_export(pointer)) return Status::not_supported;
    return WrappedDevice::export_file(pointer);
  }

 private:
  [[nodiscard]] bool may_export(const void* pointer) noexcept {
    const Result<port::PointerInfo> info = query(pointer);
    return !info || !exportable_ || exportable_(*info);
  }

  const std::function<bool(const port::ExportRecord&)> mappable_;
  const std::function<bool(const port::PointerInfo&)> exportable_;
};

std::unique_ptr<port::Device> make_device(GpuChoice gpu, bool files_only) {
  if (files_only) return port::memory::open_emulated_device({.files_only = true});
  port::DeviceRequest request;
  request.gpu = gpu == GpuChoice::emulated ? port::DeviceRequest::Gpu::emulated
                : gpu == GpuChoice::cuda   ? port::DeviceRequest::Gpu::cuda
                                           : port::DeviceRequest::Gpu::none;
  request.share_gpu = true;
  return port::open_device(request);
}

}  // namespace

InProcessJob::InProcessJob(const JobOptions& options) : network_(options.network) {
  auto values = std::make_shared<SharedBoot::Values>();
  for (int rank = 0; rank < options.ranks; ++rank) {
    port::Adapters adapters;
    adapters.boot = std::make_unique<SharedBoot>(values, rank, options.ranks, options.fence);
    adapters.device = make_device(options.gpu, options.files_only);
    if (options.mappable || options.exportable)
      adapters.device = std::make_unique<HalfSharedDevice>(std::move(adapters.device), options);
    if (options.wrap_device) adapters.device = options.wrap_device(rank, std::move(adapters.device));
    adapters.wire = network_.open_wire();
    if (options.network_takes_device) {
      adapters.wire = make_emulated_taking(std::move(adapters.wire), *adapters.device, options.device_memory_taken);
    }
    if (options.links && !options.wrap) adapters.links = port::open_links(static_cast<std::uint32_t>(options.ranks));
    if (options.wrap) adapters.wire = options.wrap(rank, std::move(adapters.wire));
    RuntimeOptions runtime = options.runtime;
    if (options.gpu == GpuChoice::cuda) runtime.share_gpu = true;  // there is one for all ranks
    runtimes_.push_back(std::make_unique<Runtime>(std::move(adapters), runtime));
  }
  for (auto& runtime : runtimes_) runtime->connect();
}

InProcessJob::~InProcessJob() = default;

bool InProcessJob::run_until(const std::function<bool()>& done) {
  constexpr auto kPatience = std::chrono::seconds(30);
  constexpr int kRoundsBetweenLooks = 1000;
  for (const TimePoint begin = Clock::now(); Clock::now() - begin < kPatience; std::this_thread::yield()) {
    for (auto& runtime : runtimes_) runtime->worker().engine().deferrals().run_if_safe();  // as waits do
    for (int round = 0; round < kRoundsBetweenLooks; ++round) {
      if (done()) return true;
      run(1);
    }
  }
  return done();
}

OpResult InProcessJob::outcome(const Operation& operation) {
  EXPECT_TRUE(run_until([&] { return operation.done(); })) << "never completed";
  return operation.done() ? operation.result() : OpResult{Status::timed_out, 0};
}

void InProcessJob::run(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (auto& runtime : runtimes_) runtime->worker().progress();
  }
}

}  // namespace brant::test
