#include "models/mpi/enqueue/enqueue_thread.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/signals_blocked.h"
#include "models/mpi/call_turns.h"
#include "models/mpi/calls.h"
#include "models/mpi/communicator.h"
#include "models/mpi/process.h"

namespace brant::mpi {

namespace {

constexpr auto kBetweenQuestions = std::chrono::milliseconds(20);

/// The first error that nobody was told of, of those communicators that are meant.
template <typename IsMeant>
void take_late(const MpiStream& stream, const IsMeant& is_meant, std::optional<CallError>& first) noexcept {
  for (Communicator* const communicator : stream.communicators) {
    if (!is_meant(*communicator)) continue;
    const std::unique_ptr<CallError> late = std::move(communicator->late);
    if (late != nullptr && !first) first = *late;
  }
}

}  // namespace

std::atomic<EnqueueThread*> EnqueueThread::the_one{nullptr};

EnqueueThread& EnqueueThread::of(Process& process) {
  if (EnqueueThread* const known = existing()) return *known;
  require(process.threads() == nullptr, MPI_ERR_UNSUPPORTED_OPERATION,
          "with several ranks in a process (--ranks) no stream carries out calls: start the program by `brant run -n "
          "{}` alone",
          Process::placement().ranks);
  auto* const made = new EnqueueThread(process);
  the_one.store(made, std::memory_order_release);
  return *made;
}

EnqueueThread::EnqueueThread(Process& process) : process_(process) {
  need_turns(process.engine());
  process.rank().has_enqueue_thread = true;
  fire = [](Timer& timer) noexcept { static_cast<EnqueueThread&>(timer).ask_driver(); };
}

// Streams
// -------------------------------------------------------------------------------------------------------------------

std::shared_ptr<MpiStream> EnqueueThread::open(port::Stream* stream) {
  if (!bells_) bells_.emplace(process_.runtime(), NotifierOptions{.bells = 1, .others = kStreamsMost, .waits = 1});
  const auto is_free = [](const auto& door) { return door->free(); };
  auto taken = [this](const auto& door) {
    return std::ranges::any_of(streams_, [&](const auto& one) { return one->door == door.get(); });
  };
  auto found = std::ranges::find_if(doors_, [&](const auto& door) { return is_free(door) && !taken(door); });
  if (found == doors_.end()) {
    require(doors_.size() < kStreamsMost, MPI_ERR_OTHER,
            "{} streams are open, or were freed and still have something to do: that is the most", kStreamsMost);
    doors_.push_back(std::make_unique<StreamDoor>(*this));
    found = doors_.end() - 1;
  }
  (*found)->open(process_.engine().device(), stream, *bells_);
  return streams_.emplace_back(std::make_shared<MpiStream>(found->get()));
}

std::shared_ptr<MpiStream> EnqueueThread::open_without_device() {
  return streams_.emplace_back(std::make_shared<MpiStream>(nullptr));
}

std::shared_ptr<MpiStream> EnqueueThread::find(const MpiStream* stream) const noexcept {
  const auto found = std::ranges::find(streams_, stream, [](const auto& one) { return one.get(); });
  return found != streams_.end() ? *found : nullptr;
}

void EnqueueThread::close(const std::shared_ptr<MpiStream>& stream) noexcept {
  stream->retire();
  std::erase(streams_, stream);
}

bool EnqueueThread::idle() const noexcept {
  return std::ranges::all_of(doors_, [](const auto& door) { return door->idle(); });
}

void EnqueueThread::watch_streams() {
  if (place == kIdle) process_.engine().timers().set(*this, Clock::now() + kBetweenQuestions);
}

void EnqueueThread::ask_driver() noexcept {
  // The stream of one that is idle may be gone.
  for (const auto& door : doors_) {
    if (!door->idle()) door->drop_if_dead();
  }
  if (idle()) return;
  try {
    watch_streams();
  } catch (const std::bad_alloc&) {
    log::error("MPI: no memory to look after streams; calls of one that fails now end when another is queued");
  }
}

// The thread
// -------------------------------------------------------------------------------------------------------------------

void EnqueueThread::start() {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable()) return;
  try {
    const SignalsBlocked blocked;
    thread_ = std::thread([this] {
      ::pthread_setname_np(::pthread_self(), "brant-enqueue");
      run();
    });
  } catch (const std::system_error& error) {
    fail(MPI_ERR_NO_MEM, "there is no thread to carry out what streams come to: {}", error.what());
  }
}

/// Also on a thread of the device, so it neither blocks nor calls anything of the device. Whoever is in MPI looks, or
/// else the thread goes there.
void EnqueueThread::wake() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!open_) return;
    news_ = true;
    if (!asked_.exchange(true)) {
      const auto ask = [](void* self) noexcept { static_cast<EnqueueThread*>(self)->look(); };
      asked_in_vain_.store(process_.engine().commands().post(ask, this) != Status::ok);
    }
  }
  woken_.notify_one();
}

void EnqueueThread::look() noexcept {
  asked_in_vain_.store(false);
  asked_.store(false);
  if (stopping_.load()) return;
  for (const auto& door : doors_) door->take_arrivals();
}

void EnqueueThread::run() noexcept {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      woken_.wait(lock, [this] { return news_ || stopping_.load(); });
      if (stopping_.load()) return;
      news_ = false;
    }
    serve();
  }
}

void EnqueueThread::serve() noexcept {
  const Turn turn;
  inside_ = true;
  look();
  current_rank().wait([this] {
    if (asked_in_vain_.load(std::memory_order_relaxed)) look();
    return under_way_ == 0 || stopping_.load(std::memory_order_relaxed);
  });
  inside_ = false;
}

// Ends
// -------------------------------------------------------------------------------------------------------------------

void drain_stream_of(const Communicator& communicator) noexcept {
  EnqueueThread* const thread = EnqueueThread::existing();
  if (thread == nullptr || communicator.stream == nullptr || communicator.stream->door == nullptr) return;
  thread->drain(*communicator.stream->door);
}

std::unique_ptr<CallError> part_from_stream(Communicator& communicator) noexcept {
  if (communicator.stream != nullptr) std::erase(communicator.stream->communicators, &communicator);
  return std::move(communicator.late);
}

void EnqueueThread::drain(StreamDoor& door) noexcept {
  process_.rank().wait([&door] {
    door.take_arrivals();
    return door.idle();
  });
}

std::optional<CallError> EnqueueThread::drain_all() noexcept {
  std::optional<CallError> first;
  for (const auto& door : doors_) drain(*door);
  process_.rank().wait([this] { return !inside_; });
  for (const auto& stream : streams_) take_late(*stream, [](const Communicator&) { return true; }, first);
  return first;
}

std::optional<CallError> EnqueueThread::drain_session(std::uint64_t session) {
  const auto is_its = [session](const Communicator& communicator) { return communicator.session == session; };
  const auto open = streams_;  // other threads may open and free streams meanwhile
  std::optional<CallError> first;
  for (const auto& stream : open) {
    if (std::ranges::none_of(stream->communicators, [&](const auto* one) { return is_its(*one); })) continue;
    if (stream->door != nullptr) drain(*stream->door);
    take_late(*stream, is_its, first);
  }
  return first;
}

void EnqueueThread::stop() noexcept {
  stopping_.store(true);
  wake();
  if (thread_.joinable()) {
    const TurnPause pause;  // this may be within a call, and the thread may want a turn to see that it is to stop
    thread_.join();
  }
  {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  if (place != kIdle) process_.engine().timers().clear(*this);
  // Not under the mutex, for which a thread of the device may wait: memory may be freed when that has gone on.
  for (const auto& door : doors_) door->close();
  bells_.reset();
}

}  // namespace brant::mpi
