#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include "port/memory.h"
#include "port/memory/emulated/bounded_ring.h"
#include "port/memory/emulated/emulated_memory.h"
#include "port/memory/emulated_options.h"

namespace brant::port::memory {

class StreamCore;

/// Arguments a kernel may have, and their bytes together (the limit GPU drivers have had for long).
inline constexpr std::size_t kKernelArgumentsMax = 64;
inline constexpr std::size_t kKernelArgumentBytesMax = 4096;

/// A place in a stream: reached when the stream has completed `sequence` commands.
struct StreamPoint {
  std::shared_ptr<StreamCore> stream;  ///< Null: nothing recorded, counts as reached.
  std::uint64_t sequence = 0;
  std::uint64_t ticket = 0;  ///< Which record of the event this was.
};

/// What an event handle names. Commands in flight keep it alive.
class EventState : public std::enable_shared_from_this<EventState> {
 public:
  using Clock = std::chrono::steady_clock;

  explicit EventState(bool timing) noexcept : timing_(timing) {}

  [[nodiscard]] bool timing() const noexcept { return timing_; }
  std::uint64_t next_ticket() noexcept { return tickets_.fetch_add(1, std::memory_order_relaxed) + 1; }
  /// The record just queued; later waits and polls mean this one.
  void set_latest(StreamPoint point) noexcept;
  [[nodiscard]] StreamPoint latest() const noexcept;
  /// On the stream's thread, when it reaches the record. Of several records the last one made counts.
  void stamp(std::uint64_t ticket) noexcept;
  /// The time of the latest record if that was stamped.
  [[nodiscard]] bool time_of_latest(Clock::time_point& time) const noexcept;

 private:
  const bool timing_;
  std::atomic<std::uint64_t> tickets_{0};
  mutable std::mutex mutex_;
  StreamPoint latest_;  ///< Protected by mutex_, like the next two.
  std::uint64_t stamped_ticket_ = 0;
  Clock::time_point stamped_time_;
};

struct CopyWork {
  EnginePlace destination;
  EnginePlace source;
  std::size_t bytes = 0;
};
struct FillWork {
  EnginePlace destination;
  std::byte value{};
  std::size_t bytes = 0;
};
struct WordsWork {
  struct Word {
    StreamWord word;
    EnginePlace place;
  };
  std::vector<Word> words;
};
struct HostCallWork {
  Streams::HostFunction function = nullptr;
  void* argument = nullptr;
};
struct RecordWork {
  std::shared_ptr<EventState> event;
  std::uint64_t ticket = 0;
};
struct WaitWork {
  StreamPoint point;
};
struct KernelWork {
  HostKernel kernel = nullptr;
  LaunchShape shape;
  bool cooperative = false;
  std::vector<std::byte> values;     ///< The argument values, each aligned.
  std::vector<std::size_t> offsets;  ///< Where each value starts.
};
using StreamWork =
    std::variant<std::monostate, CopyWork, FillWork, WordsWork, HostCallWork, RecordWork, WaitWork, KernelWork>;

/// The in-order queue behind an emulated stream, and what its thread does. Shared between the handle, the thread and
/// the points recorded in it, so that it outlives each of them.
///
/// Thread rule: one thread at a time posts; `reached`, `poll` and the waits may be called from any thread.
class StreamCore : public std::enable_shared_from_this<StreamCore> {
 public:
  explicit StreamCore(const EmulatedOptions& options);

  /// Queues work. A full queue makes the caller wait up to full_wait_ms, then limit_reached. `sequence`, if given, is
  /// the number this work has.
  Status post(StreamWork work, std::uint64_t* sequence = nullptr) noexcept;

  /// From here on `post` keeps the work, records and waits excepted, until `end_capture` hands it over.
  Status begin_capture() noexcept;
  Result<std::vector<StreamWork>> end_capture() noexcept;
  [[nodiscard]] bool captures() noexcept;

  [[nodiscard]] bool reached(std::uint64_t sequence) const noexcept {
    return completed_.load(std::memory_order_acquire) >= sequence;
  }
  /// ok when everything queued is done, in_progress, shutting_down when work was discarded, or device_failed for good.
  Status poll() const noexcept;
  Status poll(std::uint64_t sequence) const noexcept;
  /// Blocks until everything queued so far is done.
  Status drain() noexcept;
  /// The same with a limit; false when time ran out.
  bool drain_for(std::chrono::milliseconds limit) noexcept;

  /// Ends the thread after the command it is at; what is queued is discarded.
  void stop() noexcept;
  /// The thread's body.
  void run() noexcept;
  /// Waits until `run` has returned; false when time ran out.
  bool wait_ended(std::chrono::milliseconds limit) noexcept;

 private:
  Status capture(StreamWork work) noexcept;  ///< Under mutex_.
  void execute(StreamWork& work) noexcept;
  void wait_for_point(const StreamPoint& point) noexcept;
  /// False if the stream is stopped while it waits.
  bool at_word(const WordsWork::Word& word) noexcept;
  void spend(std::size_t bytes) noexcept;
  void run_kernel(KernelWork& work) noexcept;

  const EmulatedOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;                  ///< Work queued, work done, stopping, ended.
  BoundedRing<StreamWork> queue_;                    ///< Protected by mutex_, like ended_.
  std::optional<std::vector<StreamWork>> captured_;  ///< Protected by mutex_.
  bool ended_ = false;
  std::atomic<bool> stopping_{false};  ///< Written under mutex_.
  std::atomic<bool> discarded_{false};
  std::atomic<bool> failed_{false};          ///< A kernel could not run: nothing of the stream counts any more.
  std::atomic<std::uint64_t> posted_{0};     ///< Written under mutex_.
  std::atomic<std::uint64_t> completed_{0};  ///< Written by the stream's thread.
};

}  // namespace brant::port::memory
