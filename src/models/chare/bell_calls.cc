#include "brant/chare/bell_calls.h"

#include <exception>
#include <utility>

#include <fmt/format.h>

#include "models/chare/core.h"

namespace brant {

/// Stays in place, since the record of the wait does.
struct BellCalls::Calling {
  Calling(Bell bell_in, const Callback<std::uint64_t, Status>& then_in, std::uint64_t first,
          std::chrono::nanoseconds patience_in) noexcept
      : bell(std::move(bell_in)), then(then_in), next(first), patience(patience_in) {}

  /// Waits for the next epoch; as often as one has come already.
  void go_on() noexcept {
    Status status = Status::ok;
    while (status == Status::ok && waits) {
      op.delivered = {&Calling::fired, this};
      status = bell.post_when(op, next, patience);
      if (status != Status::in_progress) tell(status);
    }
  }

  /// How the wait for `next` has ended.
  void tell(Status status) noexcept {
    const std::uint64_t epoch = status == Status::ok ? bell.epoch() : next;
    next = epoch + 1;
    waits = status == Status::ok;
    try {
      then(epoch, status);
    } catch (const std::exception& error) {
      waits = false;
      if (then.core() == nullptr) return;
      then.core()->ending().fail_job(
          fmt::format("bell {} at epoch {} could not call its entry: {}", bell.number(), epoch, error.what()));
    }
  }

  static void fired(void* self, const OpResult& result) noexcept {
    auto& calling = *static_cast<Calling*>(self);
    calling.tell(result.status);
    if (calling.waits) calling.go_on();
  }

  Bell bell;
  const Callback<std::uint64_t, Status> then;
  std::uint64_t next;
  const std::chrono::nanoseconds patience;
  Op op;  ///< Withdrawn before the bell goes.
  bool waits = true;
};

BellCalls::BellCalls() noexcept = default;
BellCalls::BellCalls(BellCalls&&) noexcept = default;
BellCalls& BellCalls::operator=(BellCalls&&) noexcept = default;
BellCalls::~BellCalls() = default;

BellCalls::BellCalls(Bell bell, const Callback<std::uint64_t, Status>& then, std::uint64_t first,
                     std::chrono::nanoseconds patience)
    : calling_(std::make_unique<Calling>(std::move(bell), then, first, patience)) {
  calling_->go_on();
}

Bell& BellCalls::bell() noexcept { return calling_->bell; }
bool BellCalls::is_open() const noexcept { return calling_ != nullptr && calling_->waits; }
void BellCalls::close() noexcept { calling_.reset(); }

}  // namespace brant
