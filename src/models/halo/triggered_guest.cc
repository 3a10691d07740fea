// Modes stream and stacked with a kernel of the program that packs and unpacks.
#include <fmt/format.h>

#include "models/halo/require.h"
#include "models/halo/triggered.h"
#include "models/halo/until.h"

namespace brant::halo {

Task<void> TriggeredExchange::bind_to(std::span<const Buffer> fields) {
  prepare(fields);
  if (by_device_) co_await put_bases();
}

void TriggeredExchange::require_device() const {
  if (bases_.front() == nullptr) throw Error(Status::invalid_argument, "halo: no kernel can exchange before bind");
  if (!by_device_) Exchange::require_device();
}

MessagePlan TriggeredExchange::device_messages(unsigned blocks) {
  require_device();
  require_blocks(blocks);
  make_bells();
  return {plan_packs(guest_packs_, blocks), plan_unpacks(guest_unpacks_), taken_.device(), sent_.device()};
}

/// One exchange after another: the kernel packs and unpacks them in their order.
Task<void> TriggeredExchange::move_messages(std::uint64_t times) {
  try {
    for (; times > 0 && failed_ == Status::ok; --times) co_await move_messages_once();
  } catch (const Error& error) {
    if (failed_ == Status::ok) failed_ = error.status();
  }
  if (failed_ != Status::ok) guest_->abort();
}

Task<void> TriggeredExchange::move_messages_once() {
  ++epoch_;
  steps_ = to_.size() + coming_.size() + 1;
  take_.delivered = step_done();
  const Status status = taken_.post_when(take_, epoch_, layout_.options().patience);
  if (status != Status::in_progress) settle(status);
  post_messages();
  co_await Until{waiter_, [this] { return steps_ == 0 || failed_ != Status::ok; }};
  if (failed_ != Status::ok) co_return;
  co_await transfers_.ended();
  require(sent_.ring(epoch_), "halo: a bell of the program's kernel");
}

/// What goes wrong on one side ends the other.
Task<void> TriggeredExchange::follow(Task<bool> work) {
  bool done = false;
  try {
    done = co_await std::move(work);
  } catch (...) {
    guests_failure_ = std::current_exception();
  }
  if (done) co_return;
  if (failed_ == Status::ok) failed_ = Status::canceled;
  waiter_.resume();
}

Task<void> TriggeredExchange::accompany_kernel(PersistentKernel& kernel, std::uint64_t times, Task<bool> work) {
  transfers_.require_open();
  make_bells();
  if (sent_.epoch() != epoch_) require(sent_.ring(epoch_), "halo: a bell of the program's kernel");
  guest_ = &kernel;
  co_await when_all(move_messages(times), follow(std::move(work)));
  transfers_.throw_if_failed();
  if (guests_failure_ != nullptr) std::rethrow_exception(guests_failure_);
  if (failed_ != Status::ok) throw_unfinished();
  guest_ = nullptr;
}

/// Names what has not come: the kernel has waited for it.
void TriggeredExchange::throw_unfinished() const {
  for (const Coming& message : coming_) {
    if (message.has_come) continue;
    const halo::Message& first = message.part->transfer->links.front().message;
    throw_error(failed_, fmt::format("halo: the exchange {} of mode {} was given up: no cells "
                                     "have come from rank {}, those of block {} for block {} first",
                                     epoch_, mode_name(), message.part->transfer->rank, first.from, first.to));
  }
  throw_error(failed_, fmt::format("halo: the exchange {} of mode {} was given up beside a kernel of the program",
                                   epoch_, mode_name()));
}

}  // namespace brant::halo
