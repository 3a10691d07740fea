#include "models/halo/exchange.h"

#include <utility>

#include "models/halo/direct.h"
#include "models/halo/fused.h"
#include "models/halo/shaped.h"
#include "models/halo/triggered.h"

namespace brant::halo {

/// From the begin of a run to its end: one that ends otherwise than it should gives up.
struct Exchange::Running {
  Exchange& exchange;

  explicit Running(Exchange& exchange_in) noexcept : exchange(exchange_in) { exchange.running_ = true; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (exchange.running_) exchange.give_up();
    exchange.running_ = false;
  }
  void done() noexcept { exchange.running_ = false; }
};

void Exchange::require_fields(std::span<const Buffer> fields) const {
  if (running_) throw Error(Status::invalid_argument, "halo: an exchange is under way: await it before the next one");
  layout_.require_fields(fields);
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

Task<void> Exchange::exchange_times(std::span<const Buffer> fields, std::uint64_t times) {
  for (std::uint64_t i = 0; i < times; ++i) co_await exchange(fields);
}

Task<void> Exchange::run(std::span<const Buffer> fields, std::uint64_t times) {
  require_fields(fields);
  require_ready(fields);
  if (times == 0) co_return;
  if (times == 1) {
    co_await finish(exchange(fields));
  } else {
    co_await finish(exchange_times(fields, times));
  }
}

Task<void> Exchange::bind(std::span<const Buffer> fields) {
  require_fields(fields);
  co_await finish(bind_to(fields));
}

void Exchange::require_device() const {
  throw Error(Status::not_supported,
              "halo: kernels of the program exchange in modes direct, stream and stacked alone, in fields of device "
              "memory: `device` is of the first, `device_messages` of the others");
}

DirectPlan Exchange::device(unsigned) {
  Exchange::require_device();
  return {};
}

MessagePlan Exchange::device_messages(unsigned) {
  Exchange::require_device();
  return {};
}

Task<void> Exchange::accompany(PersistentKernel& kernel, std::uint64_t times, Task<bool> work) {
  if (running_) throw Error(Status::invalid_argument, "halo: an exchange is under way: await it before the next one");
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  require_device();
  co_await finish(accompany_kernel(kernel, times, std::move(work)));
}

/// To its end; a failure stays.
Task<void> Exchange::finish(Task<void> step) {
  Running running(*this);
  try {
    co_await std::move(step);
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
  running.done();
}

std::unique_ptr<Exchange> make_exchange(Runtime& runtime, const HaloOptions& options) {
  switch (options.mode) {
    case HaloMode::shapes: return std::make_unique<ShapedExchange>(runtime, options);
    case HaloMode::fused: return std::make_unique<FusedExchange>(runtime, options);
    case HaloMode::direct:
    case HaloMode::graph:
    case HaloMode::resident: return std::make_unique<DirectExchange>(runtime, options);
    case HaloMode::stream:
    case HaloMode::stacked: return std::make_unique<TriggeredExchange>(runtime, options);
  }
  throw Error(Status::invalid_argument, "halo: no such mode: take one of HaloMode");
}

}  // namespace brant::halo

namespace brant {

HaloExchange::HaloExchange(Runtime& runtime, const HaloOptions& options)
    : exchange_(halo::make_exchange(runtime, options)) {}
HaloExchange::HaloExchange(HaloExchange&&) noexcept = default;
HaloExchange& HaloExchange::operator=(HaloExchange&&) noexcept = default;
HaloExchange::~HaloExchange() = default;

int HaloExchange::first_block() const noexcept { return exchange_->layout().first_block(); }
int HaloExchange::blocks() const noexcept { return exchange_->layout().blocks(); }
std::size_t HaloExchange::field_bytes(int i) const { return exchange_->layout().field_bytes(i); }
std::array<std::int64_t, 3> HaloExchange::array_of(int i) const { return exchange_->layout().array_of(i); }
std::size_t HaloExchange::messages() const noexcept { return exchange_->messages(); }
std::size_t HaloExchange::message_bytes() const noexcept { return exchange_->message_bytes(); }
Task<void> HaloExchange::run(std::span<const Buffer> fields, std::uint64_t times) {
  return exchange_->run(fields, times);
}
Task<void> HaloExchange::bind(std::span<const Buffer> fields) { return exchange_->bind(fields); }
halo::DirectPlan HaloExchange::device(unsigned blocks) { return exchange_->device(blocks); }
halo::MessagePlan HaloExchange::device_messages(unsigned blocks) { return exchange_->device_messages(blocks); }
Task<void> HaloExchange::accompany(PersistentKernel& kernel, std::uint64_t times, Task<bool> work) {
  return exchange_->accompany(kernel, times, std::move(work));
}
HaloPhases HaloExchange::phases() const noexcept { return exchange_->phases(); }

}  // namespace brant
