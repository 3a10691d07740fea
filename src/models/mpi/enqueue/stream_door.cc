#include "models/mpi/enqueue/stream_door.h"

#include <utility>

#include "brant/notify/notifier.h"
#include "models/mpi/call_turns.h"
#include "models/mpi/enqueue/enqueue_thread.h"
#include "models/mpi/enqueue/enqueued_call.h"

namespace brant::mpi {

void StreamDoor::open(port::Device& device, port::Stream* stream, Notifier& bells) {
  if (!bell_.is_open()) bell_ = bells.make({.rung_by = RungBy::host, .seen_by = SeenBy::device});
  device_ = &device;
  stream_ = stream;
}

bool StreamDoor::free() const noexcept {
  const std::lock_guard lock(mutex_);
  return open_calls_ == 0 && !dead_ && taken_ == given_;
}

/// On a thread of the device.
void StreamDoor::arrive(void* self) noexcept {
  auto& door = *static_cast<StreamDoor*>(self);
  door.arrived_.fetch_add(1, std::memory_order_release);
  door.thread_.wake();
}

void StreamDoor::queue(std::unique_ptr<EnqueuedCall> call, bool waits) {
  require(!dead_, MPI_ERR_OTHER, "the stream of the communicator has failed before");
  const Result<bool> captures = device_->streams()->captures(stream_);
  require(captures.ok(), error_class_of(captures.status()), "the device does not take a call into its stream: {}",
          status_text(captures.status()));
  require(!*captures, MPI_ERR_UNSUPPORTED_OPERATION,
          "{} was called while the stream of the communicator is captured into a graph, whose launches would come to a "
          "call that was carried out before: call it before cudaStreamBeginCapture or after cudaStreamEndCapture",
          call->function());
  thread_.watch_streams();
  EnqueuedCall& queued = *call.release();
  queued.door = this;
  queued.start();
  ++open_calls_;
  Status status;
  {
    const TurnPause pause;
    status = give_to_stream(queued, waits);
  }
  if (status == Status::ok) {
    if (arrived_.load(std::memory_order_acquire) != taken_) thread_.wake();
    return;
  }
  --open_calls_;
  delete &queued;
  fail(error_class_of(status), "the device does not take a call into its stream: {}", status_text(status));
}

/// The stream may come to the call at once; it begins when it is settled that the stream waits for it, too.
Status StreamDoor::give_to_stream(EnqueuedCall& call, bool waits) noexcept {
  const std::lock_guard order(order_);
  try {
    const std::lock_guard lock(mutex_);
    calls_.push_back(&call);
    ++given_;
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  if (waits) call.epoch = ++epoch_;
  Status status = device_->streams()->call_host(&StreamDoor::arrive, this, stream_);
  const bool will_come = status == Status::ok;
  if (will_come && waits) status = bell_.enqueue_wait(stream_, call.epoch);
  const std::lock_guard lock(mutex_);
  if (status != Status::ok) {
    if (will_come) {
      calls_.back() = nullptr;  // the stream comes to nothing
    } else {
      calls_.pop_back();
      --given_;
    }
  }
  settled_ = given_;
  return status;
}

/// Null: the stream has come to nothing more.
EnqueuedCall* StreamDoor::next_arrived() noexcept {
  const std::lock_guard lock(mutex_);
  while (taken_ < settled_ && taken_ < arrived_.load(std::memory_order_acquire)) {
    ++taken_;
    if (calls_.empty()) continue;  // it was dropped
    EnqueuedCall* const call = calls_.front();
    calls_.pop_front();
    if (call != nullptr) return call;
  }
  return nullptr;
}

void StreamDoor::take_arrivals() noexcept {
  while (EnqueuedCall* const call = next_arrived()) {
    call->arrived = true;
    thread_.call_began();
    call->arrive();
  }
}

/// Those that the stream waits for end in its order.
void StreamDoor::call_ended(const EnqueuedCall& call) noexcept {
  --open_calls_;
  if (call.arrived) thread_.call_ended();
  if (call.epoch != 0) static_cast<void>(bell_.ring(call.epoch));
}

void StreamDoor::drop_if_dead() noexcept {
  const std::unique_lock order(order_, std::try_to_lock);
  if (!order || device_ == nullptr) return;  // somebody queues
  // To ask for the state of a stream spoils its capture. What it was given before may come meanwhile.
  if (const Result<bool> captures = device_->streams()->captures(stream_); captures.ok() && *captures) return;
  const Status status = device_->streams()->poll(stream_);
  if (status == Status::in_progress) return;
  take_arrivals();  // what it has come to before it was asked
  std::deque<EnqueuedCall*> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(calls_);
  }
  if (left.empty()) return;
  dead_ = true;
  const CallError why(MPI_ERR_OTHER, status == Status::ok
                                         ? "its stream has ended without coming to it"
                                         : "its stream has failed: " + std::string(status_text(status)));
  for (EnqueuedCall* const call : left) {
    if (call != nullptr) call->drop(why);
  }
}

}  // namespace brant::mpi
