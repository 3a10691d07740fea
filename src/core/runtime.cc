#include "brant/core/runtime.h"

#include <unistd.h>

#include <cstring>
#include <exception>

#include <fmt/format.h>

#include "base/env.h"
#include "base/log.h"
#include "base/variables.h"
#include "brant/core/device.h"
#include "brant/core/start_via.h"
#include "core/engine.h"
#include "core/uncaught.h"
#include "port/adapters_via.h"

namespace brant {
namespace {

constexpr std::int64_t kDaySeconds = 86'400;
constexpr std::int64_t kDayMs = kDaySeconds * 1000;

port::Gpu adapter_gpu(GpuChoice gpu) noexcept {
  switch (gpu) {
    case GpuChoice::automatic: return port::Gpu::automatic;
    case GpuChoice::none: return port::Gpu::none;
    case GpuChoice::emulated: return port::Gpu::emulated;
    case GpuChoice::cuda: return port::Gpu::cuda;
  }
  return port::Gpu::automatic;
}

port::AdapterRequest adapter_request(const RuntimeOptions& options) {
  print_uncaught_errors();
  return {adapter_gpu(options.gpu),
          options.share_gpu,
          options.sleep,
          options.boot_timeout,
          options.joining != Joining::off,
          options.joining == Joining::if_possible,
          options.joining == Joining::network,
          options.gpu_ordinal};
}

Engine::Options engine_options(const RuntimeOptions& options) {
  return {options.path,       options.share_gpu,    options.sleep, options.boot_timeout, options.calibration,
          options.statistics, options.stall_report, options.lease, options.joining};
}

Joining joining_from_environment() {
  const std::string_view joining = env("BRANT_JOIN");
  if (joining == "host") return Joining::this_host;
  if (joining == "network") return Joining::network;
  if (joining.empty() || joining == "off") return Joining::off;
  throw Error(Status::invalid_argument, fmt::format("BRANT_JOIN={}: use off, host or network", joining));
}

/// One process of each host speaks for all.
void warn_of_unread_variables(const port::JobInfo& job) {
  if (job.local_rank != 0) return;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (!is_unread_variable(name)) continue;
    const std::string meant = nearest_variable(name);
    log::warn("nobody reads {}{}", name, meant.empty() ? ": unset it" : fmt::format(": {} was meant?", meant));
  }
}

}  // namespace

RuntimeOptions RuntimeOptions::from_environment() {
  print_uncaught_errors();  // what it throws is what a Runtime cannot be made of
  RuntimeOptions options;
  const std::string_view gpu = env("BRANT_GPU");
  if (gpu == "none") {
    options.gpu = GpuChoice::none;
  } else if (gpu == "emulated") {
    options.gpu = GpuChoice::emulated;
  } else if (gpu == "cuda") {
    options.gpu = GpuChoice::cuda;
  } else if (!gpu.empty() && gpu != "auto") {
    throw Error(Status::invalid_argument, fmt::format("BRANT_GPU={}: use auto, none, emulated or cuda", gpu));
  }
  const std::string_view path = env("BRANT_PATH");
  if (!path.empty() && (!path_from_name(path, options.path) || options.path == Path::kernel)) {
    throw Error(Status::invalid_argument, fmt::format("BRANT_PATH={}: use {}", path, requestable_path_list()));
  }
  options.share_gpu = env_bool("BRANT_SHARE_GPU", false);
  options.sleep = env_bool("BRANT_SLEEP", true);
  options.boot_timeout = std::chrono::milliseconds(
      env_int_in("BRANT_BOOT_TIMEOUT_MS", options.boot_timeout.count(), {1, kDayMs, "milliseconds"}));
  const std::string_view calibration = env("BRANT_CALIBRATION");
  options.calibration = calibration.empty() ? "auto" : calibration;
  options.statistics = env_bool("BRANT_STATISTICS", true);
  options.stall_report = std::chrono::milliseconds(
      env_int_in("BRANT_STALL_REPORT_MS", options.stall_report.count(), {0, kDayMs, "milliseconds (0: never)"}));
  options.joining = joining_from_environment();
  const auto lease = std::chrono::duration_cast<std::chrono::seconds>(options.lease);
  options.lease =
      std::chrono::seconds(env_int_in("BRANT_LEASE", lease.count(), {0, kDaySeconds, "seconds (0: never)"}));
  return options;
}

Memory::~Memory() {
  if (view_.data == nullptr) return;
  const Status status = owner_->free(view_);
  if (status != Status::ok)
    log::warn("{} bytes of {} memory could not be freed: {}", view_.bytes, memory_kind_name(view_.kind),
              status_text(status));
}

Buffer Memory::part(std::size_t offset, std::size_t bytes) const {
  if (offset > view_.bytes || bytes > view_.bytes - offset) {
    throw Error(Status::invalid_argument,
                fmt::format("bytes {} to {} of an allocation of {} bytes", offset, offset + bytes, view_.bytes));
  }
  return {static_cast<std::byte*>(view_.data) + offset, bytes, view_.kind};
}

Runtime::Runtime(const RuntimeOptions& options) : Runtime(port::open_adapters(adapter_request(options)), options) {
  warn_of_unread_variables(engine_->job());
  connect();
}

Runtime::Runtime(port::Adapters adapters, const RuntimeOptions& options)
    : engine_(std::make_unique<Engine>(std::move(adapters), engine_options(options))),
      exceptions_at_start_(std::uncaught_exceptions()) {
  worker_ = std::make_unique<Worker>(*engine_);
  log::set_rank(engine_->job().rank);
}

Runtime::~Runtime() {
  if (!engine_->is_of_this_process()) {
    log::warn(
        "a child of fork() ends with a copy of its parent's Runtime, and leaves it alone: end it by _exit or exec");
    // For good, and where a search for leaks finds it.
    [[maybe_unused]] static auto* volatile copy = new std::pair(std::move(worker_), std::move(engine_));
    return;
  }
  // While an exception unwinds, the others cannot be waited for: the launcher ends them.
  if (std::uncaught_exceptions() == exceptions_at_start_) engine_->shut_down();
}

void Runtime::leave() noexcept {
  if (engine_->is_of_this_process()) engine_->shut_down();
  exceptions_at_start_ = kHasLeft;
}

std::unique_ptr<Runtime> start_via(Exchange& exchange, const RuntimeOptions& options) {
  auto runtime = std::make_unique<Runtime>(port::open_adapters_via(exchange, adapter_request(options)), options);
  runtime->connect();
  return runtime;
}

void Runtime::connect() { engine_->exchange(); }

Rank Runtime::rank() const noexcept { return Rank{engine_->job().rank}; }
int Runtime::size() const noexcept { return engine_->job().size; }
int Runtime::local_rank() const noexcept { return engine_->job().local_rank; }
int Runtime::local_size() const noexcept { return engine_->job().local_size; }
const std::string& Runtime::network() const noexcept { return engine_->wire().capabilities().version; }
const std::string& Runtime::network_remark() const noexcept { return engine_->wire().capabilities().remark; }

PathUse Runtime::path_use() const noexcept {
  PathUse use;
  const Counters& counters = engine_->counters();
  for (std::size_t path = 0; path < counters.paths.size(); ++path) {
    use.messages[path] = counters.paths[path].sends.read();
    use.bytes[path] = counters.paths[path].bytes_sent.read();
  }
  return use;
}

Device Runtime::device() noexcept { return Device(engine_->device()); }

MemoryKind Runtime::device_kind() noexcept { return device().kind(); }

Memory Runtime::allocate(MemoryKind kind, std::size_t bytes) {
  port::Device& device = engine_->device();
  if (kind == MemoryKind::detect || !device.capabilities().offers(kind)) {
    throw Error(Status::not_supported,
                fmt::format("rank {} cannot allocate {} memory: its device is '{}'. Set BRANT_GPU=cuda on a machine "
                            "with a GPU, or BRANT_GPU=emulated for a device made of threads",
                            rank().value, memory_kind_name(kind), device.capabilities().name));
  }
  const Result<void*> data = engine_->late_frees().allocate(kind, bytes);
  if (!data) {
    throw Error(data.status(),
                fmt::format("rank {}: {} bytes of {} memory on '{}': {}{}", rank().value, bytes, memory_kind_name(kind),
                            device.capabilities().name, status_text(data.status()), engine_->late_frees().describe()));
  }
  return Memory(engine_->late_frees(), Buffer(*data, bytes, kind));
}

void Runtime::tidy() noexcept {
  if (engine_->late_frees().kernels_stay()) {
    return log::warn(
        "nothing is tidied up while a kernel stays on the device, or a stream waits, for which the driver would wait: "
        "end it first");
  }
  engine_->late_frees().tidy();
  engine_->deferrals().run();
}

void Runtime::copy(Buffer destination, ConstBuffer source) {
  if (source.bytes > destination.bytes) {
    throw Error(Status::invalid_argument, fmt::format("{} bytes do not fit into {}", source.bytes, destination.bytes));
  }
  if (source.bytes == 0) return;
  Status status = engine_->memory_kinds().resolve(destination.data, destination.bytes, destination.kind);
  if (status == Status::ok) status = engine_->memory_kinds().resolve(source.data, source.bytes, source.kind);
  port::Streams* streams = engine_->device().streams();
  if (status == Status::ok && host_accessible(destination.kind) && host_accessible(source.kind)) {
    std::memcpy(destination.data, source.data, source.bytes);
    return;
  }
  if (status == Status::ok && streams == nullptr) status = Status::not_supported;
  if (status == Status::ok) {
    const Result<port::Stream*> stream = streams->create_stream(port::StreamPriority::normal);
    status = stream.status();
    if (stream.ok()) {
      status = streams->copy(destination.data, source.data, source.bytes, *stream);
      if (status == Status::ok) status = streams->synchronize(*stream);
      streams->destroy_stream(*stream);
    }
  }
  if (status != Status::ok) {
    throw Error(status,
                fmt::format("copy of {} bytes from {} to {} memory: {}", source.bytes, memory_kind_name(source.kind),
                            memory_kind_name(destination.kind), status_text(status)));
  }
}

}  // namespace brant
