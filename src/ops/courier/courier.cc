#include "ops/courier/courier.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <new>
#include <thread>

#include "base/log.h"
#include "ops/courier/courier_on_host.h"

// Made by brant_fatbin from courier_kernel.cu.
extern "C" const unsigned char courier_kernel_fatbin[];
extern "C" const std::size_t courier_kernel_fatbin_bytes;

namespace brant {
namespace {

using courier::Launch;
using Clock = std::chrono::steady_clock;

constexpr std::array<std::size_t, 1> kArgumentBytes{sizeof(Launch)};
constexpr auto kGoneMax = std::chrono::seconds(5);
/// How often, in polls with orders under way, the driver is asked whether the kernel is still well.
constexpr unsigned kPollsPerCheck = 4096;

std::uint64_t nanoseconds(double us) noexcept { return static_cast<std::uint64_t>(us * 1e3); }

std::uint32_t order_bytes(std::size_t bytes) noexcept {
  return static_cast<std::uint32_t>(std::min(bytes, courier::kOrderBytesMax));
}

CourierOptions sane(CourierOptions options) noexcept {
  options.blocks = std::clamp(options.blocks, 1u, courier::kGroupsMax);
  options.warps = std::clamp(options.warps, 1u, courier::kWarpsMax);
  options.bytes_max = std::min(options.bytes_max, courier::kOrderBytesMax);
  options.dispatchers = std::clamp(options.dispatchers, 1u, courier::kDispatchersMax);
  options.look_idle = std::clamp(options.look_idle, 1u, courier::kOrdersPerLook);
  options.look_busy = std::clamp(options.look_busy, 1u, courier::kOrdersPerLook);
  options.part_bytes = std::max<std::size_t>(options.part_bytes, 4096);
  return options;
}

}  // namespace

Courier::Courier(port::Device& device, const CourierOptions& options) noexcept
    : device_(device), options_(sane(options)), machine_(nullptr, nullptr) {
  if (!options.enabled) {
    log::info("the courier is switched off");
    return;
  }
  if (const Status opened = open(); opened != Status::ok) {
    log::info("no courier on {}: {}", device.capabilities().name, status_text(opened));
    kernel_ = nullptr;
  }
}

Status Courier::open() noexcept {
  port::Kernels* kernels = device_.kernels();
  port::Streams* streams = device_.streams();
  if (kernels == nullptr || streams == nullptr) return Status::not_supported;
  const auto image = std::as_bytes(std::span(courier_kernel_fatbin, courier_kernel_fatbin_bytes));
  const Result<port::Kernel*> kernel =
      kernels->load({image, "brant_courier", &courier::courier_on_host, kArgumentBytes});
  if (!kernel) return kernel.status();
  const Result<port::Stream*> stream = streams->create_stream(port::StreamPriority::high);
  if (!stream) return stream.status();
  stream_ = *stream;
  const Result<void*> host = device_.allocate(MemoryKind::pinned, sizeof(courier::HostDesk));
  if (!host) return host.status();
  host_ = new (*host) courier::HostDesk{};
  const bool cuda = device_.capabilities().offers(MemoryKind::cuda);
  const Result<void*> desk =
      device_.allocate(cuda ? MemoryKind::cuda : MemoryKind::emulated, sizeof(courier::DeviceDesk));
  if (!desk) return desk.status();
  device_desk_ = static_cast<courier::DeviceDesk*>(*desk);
  if (const Status zeroed = streams->fill(device_desk_, std::byte{0}, sizeof(courier::DeviceDesk), stream_);
      zeroed != Status::ok) {
    return zeroed;
  }
  book_.reset(new (std::nothrow) Book(machine_, *host_, options_.dispatchers));
  if (book_ == nullptr) return Status::no_memory;
  kernel_ = *kernel;
  return Status::ok;
}

Courier::~Courier() {
  if (!wait_gone()) {
    log::warn(
        "a courier launched on {} does not start, because other work keeps the GPU busy: its {} bytes of memory are "
        "given up",
        device_.capabilities().name, sizeof(courier::HostDesk) + sizeof(courier::DeviceDesk));
    return;
  }
  if (stream_ != nullptr) device_.streams()->destroy_stream(stream_);
  if (device_desk_ != nullptr) static_cast<void>(device_.free(device_desk_));
  if (host_ != nullptr) static_cast<void>(device_.free(host_));
}

bool Courier::wait_gone() noexcept {
  if (book_ == nullptr || failed_ != Status::ok) return true;
  static_cast<void>(book_->look());
  static_cast<void>(book_->post_stop());  // no room, or starting: the lease ends it
  const auto limit = Clock::now() + kGoneMax + std::chrono::microseconds(static_cast<long>(options_.lease_us));
  while (device_.streams()->poll(stream_) == Status::in_progress) {
    if (Clock::now() > limit) return false;
    std::this_thread::yield();
  }
  return true;
}

Status Courier::post(const CourierOrder& order) noexcept {
  if (failed_ != Status::ok) return failed_;
  if (kernel_ == nullptr) return Status::not_supported;
  if (order.bytes > options_.bytes_max || !courier::writable(order)) return Status::invalid_argument;
  return book_->post(order) ? Status::ok : Status::limit_reached;
}

void Courier::start(std::size_t bytes) noexcept {
  if (!usable() || book_->courier() != Book::Courier::away) return;
  blocks_ =
      static_cast<unsigned>(std::clamp<std::size_t>(std::bit_ceil(bytes / options_.part_bytes), 1, options_.blocks));
  launch();
}

void Courier::launch() noexcept {
  Launch launch{};
  launch.host = host_;
  launch.device = device_desk_;
  book_->launch(launch);
  launch.groups = blocks_;
  launch.groups_before = groups_before_;
  launch.idle_ns = nanoseconds(options_.idle_us);
  launch.lease_ns = nanoseconds(options_.lease_us);
  launch.alone_bytes = order_bytes(options_.alone_bytes);
  launch.part_bytes = order_bytes(options_.part_bytes);
  launch.look_idle = options_.look_idle;
  launch.look_busy = options_.look_busy;
  launch.by_model = options_.fences_by_model(device_.capabilities().architecture) ? 1 : 0;
  port::LaunchShape shape;
  shape.grid[0] = blocks_;
  shape.block[0] = 32 * (options_.dispatchers + options_.warps);
  void* arguments[] = {&launch};
  const Status launched = device_.kernels()->launch(kernel_, shape, arguments, stream_);
  if (launched == Status::ok) {
    groups_before_ += blocks_ - 1;
    return;
  }
  book_->launch_failed();
  fail(launched, "could not be launched");
}

unsigned Courier::poll() noexcept {
  if (!usable()) return 0;
  const unsigned ended = book_->look();
  if (book_->courier() == Book::Courier::starting) {
    check_stream();
  } else if (book_->taken() != 0 && ++looks_ % kPollsPerCheck == 0) {
    check_stream();
  }
  if (usable() && book_->left_over() != 0 && book_->courier() == Book::Courier::away) launch();
  return ended;
}

void Courier::check_stream() noexcept {
  const Status status = device_.streams()->poll(stream_);
  if (status == Status::in_progress) return;
  if (status != Status::ok) return fail(status, "died");
  // It has ended, so everything it wrote is here.
  static_cast<void>(book_->look());
  if (machine_.load_acquire(&host_->fault) != 0)
    return fail(Status::device_failed, "met an order with memory out of reach");
  if (book_->courier() != Book::Courier::away) return fail(Status::internal, "ended without saying so");
  if (book_->taken() != 0) fail(Status::internal, "ended before it had done what it took");
}

void Courier::fail(Status status, const char* what) noexcept {
  failed_ = status;
  log::error("the courier on {} {} ({}); {} orders under way are lost", device_.capabilities().name, what,
             status_text(status), book_->posted() - book_->done());
}

}  // namespace brant
