#include "ops/mover/shaped_copier.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "ops/mover/common_runs.h"

namespace brant {
namespace {

/// Orders of one call: a launch takes some microseconds for 64 of them.
constexpr std::size_t kRunsMost = 2048;

/// Bytes of the next runs, kRunsMost of them.
std::size_t bytes_of_runs(const StepEnd& end, std::size_t most) noexcept {
  ShapeCursor cursor(end.shape, end.position, end.mark);
  std::size_t bytes = 0;
  for (std::size_t run = 0; run < kRunsMost && bytes < most; ++run) {
    const std::size_t together = std::min(cursor.together(), most - bytes);
    bytes += together;
    cursor.advance(together);
  }
  return bytes;
}

/// Widens `bits` by what a unit must divide at this end.
std::uint64_t divisible(const StepEnd& end, std::uint64_t bits) noexcept {
  bits |= end.place.address;
  if (end.shape == nullptr) return bits;
  bits |= end.shape->first() | end.shape->run() | end.position;
  for (const ShapeDim& dim : end.shape->dims()) bits |= static_cast<std::uint64_t>(dim.stride);
  return bits;
}

ShapedOrder::End order_end(const StepEnd& end, std::uint32_t unit) noexcept {
  ShapedOrder::End order{};
  order.first = end.place.memory();
  if (end.shape == nullptr) return order;
  order.first += end.shape->first();
  order.position = end.position / unit;
  order.run = end.shape->run() / unit;
  for (const ShapeDim& dim : end.shape->dims()) {
    order.count[order.dims] = dim.count;
    order.stride[order.dims++] = dim.stride;
  }
  return order;
}

}  // namespace

ShapedCopier::ShapedCopier(Engine& engine, CopyKernels& kernels, CopyEnd done) noexcept
    : engine_(engine),
      done_(done),
      kernels_(kernels),
      events_(engine.device()),
      lane_(engine.device(), events_, {&ShapedCopier::ended, this}) {}

bool ShapedCopier::goes_run_by_run(const StepEnd& end) const noexcept {
  if (end.shape == nullptr) return false;
  return end.shape->form() == Shape::Form::indexed || !kernels_.take_shapes();
}

std::size_t ShapedCopier::step_bytes(const StepEnd& to, const StepEnd& from, std::size_t most) const noexcept {
  if (!goes_run_by_run(to) && !goes_run_by_run(from)) return most;
  return std::min(bytes_of_runs(to, most), bytes_of_runs(from, most));
}

Status ShapedCopier::start(const StepEnd& to, const StepEnd& from, std::size_t bytes, DeviceCopy& copy) noexcept {
  if (engine_.device().streams() == nullptr) return Status::not_supported;
  const Result<port::Stream*> stream = lane_.stream();
  if (!stream) return stream.status();
  const Status issued = issue(to, from, bytes, *stream);
  copy.broken = issued != Status::ok;
  copy.no_memory = issued == Status::no_memory;
  DeviceCopies batch;
  batch.push_back(copy);
  const Status status = lane_.close(batch);
  if (status != Status::ok) {
    batch.remove(copy);
    return status;
  }
  engine_.pollers().attach(*this);
  return Status::ok;
}

Status ShapedCopier::issue(const StepEnd& to, const StepEnd& from, std::size_t bytes, port::Stream* stream) noexcept {
  const bool by_runs = goes_run_by_run(to) || goes_run_by_run(from);
  return by_runs ? issue_runs(to, from, bytes, stream) : issue_strided(to, from, bytes, stream);
}

Status ShapedCopier::issue_strided(const StepEnd& to, const StepEnd& from, std::size_t bytes,
                                   port::Stream* stream) noexcept {
  constexpr std::uint64_t kUnitMost = 16;
  const std::uint64_t bits = divisible(from, divisible(to, bytes | kUnitMost));
  ShapedOrder order{};
  order.unit = 1u << std::countr_zero(bits);
  order.units = bytes / order.unit;
  order.to = order_end(to, order.unit);
  order.from = order_end(from, order.unit);
  order.narrow = is_narrow(order.to, order.units) && is_narrow(order.from, order.units);
  return kernels_.launch(order, stream);
}

Status ShapedCopier::issue_runs(const StepEnd& to, const StepEnd& from, std::size_t bytes,
                                port::Stream* stream) noexcept {
  CommonRuns runs(to, from, bytes);
  CopyOrders orders{};
  unsigned count = 0;
  std::size_t largest = 0;
  Status status = Status::ok;
  while (runs.left() != 0 && status == Status::ok) {
    const CommonRuns::Run run = runs.next();
    if (!kernels_.take_orders()) {
      status = engine_.device().streams()->copy(run.to, run.from, run.bytes, stream);
      continue;
    }
    orders.orders[count++] = {run.to, run.from, run.bytes};
    largest = std::max(largest, run.bytes);
    if (count < CopyOrders::kMax && runs.left() != 0) continue;
    status = kernels_.launch(orders, std::exchange(count, 0), std::exchange(largest, 0), stream);
  }
  return status;
}

void ShapedCopier::ended(void* self, DeviceCopy& copy, Status status) noexcept {
  const CopyEnd& done = static_cast<ShapedCopier*>(self)->done_;
  if (copy.broken) status = copy.no_memory ? Status::no_memory : Status::device_failed;
  done(copy, status);
}

unsigned ShapedCopier::poll() noexcept {
  const unsigned ended = lane_.poll();
  if (lane_.empty()) engine_.pollers().detach(*this);
  return ended;
}

}  // namespace brant
