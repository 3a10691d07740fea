#include "port/memory/emulated/stream_core.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/log.h"
#include "port/simt.h"

namespace brant::port::memory {
namespace {

using Clock = EventState::Clock;
using namespace std::chrono_literals;

/// How often waits on another stream look whether their own stream is being stopped.
constexpr auto kStopCheck = 20ms;
/// How often waits for a word look, and how many times before that without a pause.
constexpr auto kWordCheck = 50us;
constexpr unsigned kLooksAwake = 200;

void* engine_address(void* pointer) noexcept { return EmulatedMemory::of_process().engine_address(pointer); }

template <typename T>
std::atomic_ref<T> atomic_at(const WordsWork::Word& word) noexcept {
  return std::atomic_ref<T>(*reinterpret_cast<T*>(word.place.address));
}

/// Release: whoever sees the value, in this process or another, sees all the work before it.
template <typename T>
void write_word(const WordsWork::Word& word) noexcept {
  atomic_at<T>(word).store(static_cast<T>(word.word.value), std::memory_order_release);
}

template <typename T>
bool has_come(const WordsWork::Word& word) noexcept {
  const T now = atomic_at<T>(word).load(std::memory_order_acquire);
  const T value = static_cast<T>(word.word.value);
  switch (word.word.act) {
    case StreamWord::Act::wait_equal: return now == value;
    case StreamWord::Act::wait_any_bit: return (now & value) != 0;
    default: return static_cast<std::make_signed_t<T>>(static_cast<T>(now - value)) >= 0;
  }
}

}  // namespace

void EventState::set_latest(StreamPoint point) noexcept {
  const std::lock_guard lock(mutex_);
  std::swap(latest_, point);
}

StreamPoint EventState::latest() const noexcept {
  const std::lock_guard lock(mutex_);
  return latest_;
}

void EventState::stamp(std::uint64_t ticket) noexcept {
  const std::lock_guard lock(mutex_);
  if (ticket <= stamped_ticket_) return;
  stamped_ticket_ = ticket;
  stamped_time_ = Clock::now();
}

bool EventState::time_of_latest(Clock::time_point& time) const noexcept {
  const std::lock_guard lock(mutex_);
  if (latest_.ticket == 0 || latest_.ticket != stamped_ticket_) return false;
  time = stamped_time_;
  return true;
}

StreamCore::StreamCore(const EmulatedOptions& options) : options_(options), queue_(options.queue_depth) {}

Status StreamCore::post(StreamWork work, std::uint64_t* sequence) noexcept {
  std::unique_lock lock(mutex_);
  if (captured_) return capture(std::move(work));
  const auto has_room = [this] { return !queue_.full() || stopping_.load(std::memory_order_relaxed); };
  if (!changed_.wait_for(lock, std::chrono::milliseconds(options_.full_wait_ms), has_room))
    return Status::limit_reached;
  if (stopping_.load(std::memory_order_relaxed)) return Status::shutting_down;
  queue_.push(std::move(work));
  const std::uint64_t number = posted_.load(std::memory_order_relaxed) + 1;
  posted_.store(number, std::memory_order_release);
  if (sequence != nullptr) *sequence = number;
  lock.unlock();
  changed_.notify_all();
  return Status::ok;
}

Status StreamCore::capture(StreamWork work) noexcept {
  if (std::holds_alternative<RecordWork>(work) || std::holds_alternative<WaitWork>(work)) return Status::not_supported;
  try {
    captured_->push_back(std::move(work));
    return Status::ok;
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

Status StreamCore::begin_capture() noexcept {
  const std::lock_guard lock(mutex_);
  if (captured_) return Status::invalid_argument;
  captured_.emplace();
  return Status::ok;
}

bool StreamCore::captures() noexcept {
  const std::lock_guard lock(mutex_);
  return captured_.has_value();
}

Result<std::vector<StreamWork>> StreamCore::end_capture() noexcept {
  const std::lock_guard lock(mutex_);
  if (!captured_) return Status::invalid_argument;
  std::vector<StreamWork> work = std::move(*captured_);
  captured_.reset();
  return work;
}

Status StreamCore::poll(std::uint64_t sequence) const noexcept {
  if (!reached(sequence)) return Status::in_progress;
  if (failed_.load(std::memory_order_acquire)) return Status::device_failed;
  return discarded_.load(std::memory_order_acquire) ? Status::shutting_down : Status::ok;
}

Status StreamCore::poll() const noexcept { return poll(posted_.load(std::memory_order_acquire)); }

Status StreamCore::drain() noexcept {
  const std::uint64_t target = posted_.load(std::memory_order_acquire);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return reached(target); });
  return poll(target);
}

bool StreamCore::drain_for(std::chrono::milliseconds limit) noexcept {
  const std::uint64_t target = posted_.load(std::memory_order_acquire);
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return reached(target); });
}

void StreamCore::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_.store(true, std::memory_order_relaxed);
  }
  changed_.notify_all();
}

bool StreamCore::wait_ended(std::chrono::milliseconds limit) noexcept {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return ended_; });
}

void StreamCore::run() noexcept {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !queue_.empty() || stopping_.load(std::memory_order_relaxed); });
    if (stopping_.load(std::memory_order_relaxed)) break;
    StreamWork work = queue_.pop();
    lock.unlock();
    execute(work);
    work = StreamWork{};  // lets go of mappings and events before the command counts as done
    lock.lock();
    completed_.store(completed_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    changed_.notify_all();
  }
  if (!queue_.empty()) discarded_.store(true, std::memory_order_release);
  while (!queue_.empty()) queue_.pop();
  completed_.store(posted_.load(std::memory_order_relaxed), std::memory_order_release);
  ended_ = true;
  changed_.notify_all();
}

void StreamCore::execute(StreamWork& work) noexcept {
  // A stream that has failed carries out nothing any more. Events are told all the same.
  if (failed_.load(std::memory_order_relaxed) && !std::holds_alternative<RecordWork>(work)) return;
  if (auto* copy = std::get_if<CopyWork>(&work)) {
    spend(copy->bytes);
    std::memmove(copy->destination.address, copy->source.address, copy->bytes);
  } else if (auto* fill = std::get_if<FillWork>(&work)) {
    spend(fill->bytes);
    std::memset(fill->destination.address, std::to_integer<int>(fill->value), fill->bytes);
  } else if (auto* words = std::get_if<WordsWork>(&work)) {
    spend(0);
    // What was not waited for is not written behind.
    const bool came = std::ranges::all_of(words->words, [&](const WordsWork::Word& word) { return at_word(word); });
    if (!came) discarded_.store(true, std::memory_order_release);
  } else if (auto* call = std::get_if<HostCallWork>(&work)) {
    spend(0);
    call->function(call->argument);
  } else if (auto* record = std::get_if<RecordWork>(&work)) {
    record->event->stamp(record->ticket);
  } else if (auto* wait = std::get_if<WaitWork>(&work)) {
    wait_for_point(wait->point);
  } else if (auto* kernel = std::get_if<KernelWork>(&work)) {
    spend(0);
    run_kernel(*kernel);
  }
}

bool StreamCore::at_word(const WordsWork::Word& word) noexcept {
  const bool wide = word.word.bytes == 8;
  if (word.word.act == StreamWord::Act::write) {
    wide ? write_word<std::uint64_t>(word) : write_word<std::uint32_t>(word);
    return true;
  }
  for (unsigned looks = 0; !(wide ? has_come<std::uint64_t>(word) : has_come<std::uint32_t>(word)); ++looks) {
    if (stopping_.load(std::memory_order_relaxed)) return false;
    if (looks < kLooksAwake) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kWordCheck);  // nobody says when memory changes
    }
  }
  return true;
}

void StreamCore::wait_for_point(const StreamPoint& point) noexcept {
  if (point.stream == nullptr) return;
  StreamCore& other = *point.stream;
  std::unique_lock lock(other.mutex_);
  while (!other.reached(point.sequence) && !stopping_.load(std::memory_order_relaxed)) {
    other.changed_.wait_for(lock, kStopCheck);
  }
}

void StreamCore::spend(std::size_t bytes) noexcept {
  double us = options_.command_us;
  if (options_.gigabytes_per_s > 0) us += static_cast<double>(bytes) / (options_.gigabytes_per_s * 1e3);
  if (us <= 0) return;
  const auto until =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::micro>(us));
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, until, [&] { return stopping_.load(std::memory_order_relaxed) || Clock::now() >= until; });
}

void StreamCore::run_kernel(KernelWork& work) noexcept {
  std::array<void*, kKernelArgumentsMax> arguments{};
  for (std::size_t i = 0; i < work.offsets.size(); ++i) arguments[i] = work.values.data() + work.offsets[i];
  const HostLaunch all{.shape = work.shape,
                       .arguments = arguments.data(),
                       .engine_address = &engine_address,
                       .first_block = 0,
                       .blocks = work.shape.blocks()};
  if (!work.cooperative) return work.kernel(all);
  const bool ran = simt::run_at_once(static_cast<unsigned>(all.blocks), [&](unsigned block) noexcept {
    HostLaunch one = all;
    one.first_block = block;
    one.blocks = 1;
    work.kernel(one);
  });
  if (ran) return;
  log::error("emulated device: no threads for the {} blocks of a cooperative launch; its stream has failed",
             all.blocks);
  failed_.store(true, std::memory_order_release);
}

}  // namespace brant::port::memory
