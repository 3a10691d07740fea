#include "ops/rma/device_atomics.h"

#include <array>
#include <new>
#include <span>

#include "base/atomic_word.h"
#include "base/log.h"
#include "ops/rma/atomic_orders.h"

// Made by brant_fatbin from atomic_kernels.cu.
extern "C" const unsigned char rma_kernels_fatbin[];
extern "C" const std::size_t rma_kernels_fatbin_bytes;

namespace brant {
namespace {

constexpr std::array<std::size_t, 1> kArgumentBytes{sizeof(AtomicOrders)};

/// What the kernel does, for devices without a GPU. A word that is null was freed by a program that gave up.
void perform_on_host(const port::HostLaunch& launch) noexcept {
  const auto orders = launch.value<AtomicOrders>(0);
  for (unsigned i = 0; i < orders.count; ++i) {
    const AtomicOrders::Order& order = orders.orders[i];
    void* const word = launch.engine_address(order.word);
    auto* const before = static_cast<std::uint64_t*>(launch.engine_address(order.before));
    if (word != nullptr && before != nullptr) *before = perform_atomic(word, order.what);
  }
}

}  // namespace

DeviceAtomics::~DeviceAtomics() {
  engine_.pollers().detach(*this);
  lane_.reset();
  stages_->give_back(results_);
}

Status DeviceAtomics::open() noexcept {
  if (lane_) return Status::ok;
  port::Kernels* const kernels = engine_.device().kernels();
  if (kernels == nullptr || engine_.device().streams() == nullptr) return Status::not_supported;
  const auto image = std::as_bytes(std::span(rma_kernels_fatbin, rma_kernels_fatbin_bytes));
  const Result<port::Kernel*> kernel = kernels->load({image, "brant_atomics", &perform_on_host, kArgumentBytes});
  if (!kernel) {
    log::error("no kernel for atomics on device memory: {}", status_text(kernel.status()));
    return kernel.status();
  }
  if (results_.data == nullptr) {
    const Result<StagePool::Lease> lease = stages_->take(kMost * sizeof(std::uint64_t));
    if (!lease) return lease.status();
    results_ = *lease;
  }
  try {
    free_.reserve(kMost);
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  for (std::size_t i = kMost; i-- > 0;) free_.push_back(static_cast<std::uint64_t*>(results_.data) + i);
  kernel_ = *kernel;
  lane_.emplace(engine_.device(), events_, done_);
  return Status::ok;
}

Status DeviceAtomics::start(DeviceAtomic& atomic) noexcept {
  if (const Status status = open(); status != Status::ok) return status;
  if (free_.empty()) return Status::limit_reached;
  atomic.before = free_.back();
  free_.pop_back();
  asked_.push_back(atomic);
  engine_.pollers().attach(*this);
  return Status::in_progress;
}

Status DeviceAtomics::launch(const DeviceCopies& batch) noexcept {
  const Result<port::Stream*> stream = lane_->stream();
  if (!stream) return stream.status();
  AtomicOrders orders{};
  for (const DeviceCopy* copy = batch.front(); copy != nullptr; copy = DeviceCopies::next(*copy)) {
    const auto& atomic = static_cast<const DeviceAtomic&>(*copy);
    orders.orders[orders.count++] = {atomic.word, atomic.before, atomic.what};
  }
  port::LaunchShape shape;
  shape.block[0] = AtomicOrders::kMax;
  void* arguments[] = {&orders};
  return engine_.device().kernels()->launch(kernel_, shape, arguments, *stream);
}

void DeviceAtomics::issue() noexcept {
  while (!asked_.empty()) {
    DeviceCopies batch;
    for (unsigned count = 0; count < AtomicOrders::kMax && !asked_.empty(); ++count)
      batch.push_back(*asked_.pop_front());
    Status status = launch(batch);
    if (status == Status::ok) status = lane_->close(batch);
    failed_.take(batch, status);
  }
}

unsigned DeviceAtomics::poll() noexcept {
  const unsigned ended = failed_.tell(done_) + lane_->poll();
  issue();
  if (asked_.empty() && failed_.empty() && lane_->empty()) engine_.pollers().detach(*this);
  return ended;
}

}  // namespace brant
