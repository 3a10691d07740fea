#include "models/mpi/enqueue/enqueued_call.h"

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "models/mpi/calls.h"
#include "models/mpi/enqueue/stream_door.h"
#include "models/mpi/posting.h"

namespace brant::mpi {

EnqueuedCall::~EnqueuedCall() {
  for (Part& part : parts_) {
    if (part.request->ready()) continue;
    part.request->whole = nullptr;
    part.request.release()->freed = true;
  }
}

void EnqueuedCall::add(std::unique_ptr<Request> part, const StatusPlace& status) {
  parts_.push_back({std::move(part), status});
}

void EnqueuedCall::arrive() noexcept {
  for (const Part& part : parts_) {
    Request& request = *part.request;
    if (request.ended()) {
      part_ended(request);
      continue;
    }
    request.whole = this;
    if (!request.active()) request.start();
  }
  drop_one();
}

void EnqueuedCall::drop(const CallError& why) noexcept {
  outcome.error = why.error_class();
  for (const Part& part : parts_) part.status.tell(outcome);
  end(conclude_with(why));
}

int EnqueuedCall::conclude() noexcept { return conclude_with(finish_parts()); }

/// The first error of them, after all have been taken as a wait takes them.
std::optional<CallError> EnqueuedCall::finish_parts() noexcept {
  std::optional<CallError> first;
  for (const Part& part : parts_) {
    Request& request = *part.request;
    try {
      std::optional<CallError> error = error_in([&] { complete(request); });
      if (error && !first) first = std::move(error);
    } catch (const std::exception&) {
      if (!first) first = CallError(MPI_ERR_NO_MEM, {});
    }
    outcome = request.outcome;
    part.status.tell(outcome);
  }
  return first;
}

/// Errors are there before the stream goes on: what the program does behind it may ask for them.
int EnqueuedCall::conclude_with(const std::optional<CallError>& error) noexcept {
  if (error && freed) note_late_error(*communicator, function_, *error);
  try {
    if (error) fault_ = error->what();
  } catch (const std::bad_alloc&) {
    fault_.clear();
  }
  door->call_ended(*this);
  return error ? error->error_class() : kSuccess;
}

std::string EnqueuedCall::text() const {
  const std::string what =
      parts_.size() == 1 ? parts_.front().request->text() : fmt::format("{} requests", parts_.size());
  return fmt::format("{} ({})", function_, what);
}

bool EnqueuedCall::uses(const std::byte* base, std::size_t bytes) const noexcept {
  return std::ranges::any_of(parts_, [=](const Part& part) { return part.request->uses(base, bytes); });
}

void note_late_error(Communicator& communicator, const char* function, const CallError& error) noexcept {
  const ErrorHandler::Action action = communicator.handler->action;
  if (action == ErrorHandler::Action::fatal || action == ErrorHandler::Action::abort) {
    hand_over(&communicator, function, error);
    return;
  }
  if (communicator.late != nullptr) return;  // the first one is why
  try {
    communicator.late = std::make_unique<CallError>(
        error.error_class(), fmt::format("{}, which a stream has carried out on {}, failed: {}", function,
                                         name_of(communicator), error.what()));
  } catch (const std::bad_alloc&) {
    hand_over(static_cast<Communicator*>(nullptr), function, CallError(MPI_ERR_NO_MEM, {}));
  }
}

}  // namespace brant::mpi
