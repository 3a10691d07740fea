#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "bindings/python/awaitable.h"
#include "brant/base/exchange.h"
#include "brant/base/intrusive_list.h"
#include "brant/chare.h"
#include "brant/core/stream.h"

namespace brant::python {

class Task;

/// This interpreter's part in the job: its one Runtime, started when it is first needed, and what waits for it.
///
/// All of it belongs to the thread that started it. That thread lets go of the GIL while it sleeps, so a sink may run
/// without it: a sink only calls `ended`, and everything that touches Python objects happens in `drain`, with the GIL.
class Process {
 public:
  static Process& get();

  /// Started if it was not. Throws what a Runtime throws, not_supported in another thread than the first one, and
  /// shutting_down after `end`.
  Runtime& runtime();
  /// `exchange`: through which the processes meet; null: as whoever started them says.
  void start(std::optional<GpuChoice> gpu, std::optional<Joining> joining,
             std::unique_ptr<Exchange> exchange = nullptr);
  /// On which what other libraries compute is waited for: they order it before this stream (DLPack's `stream`). Made
  /// when it is first needed. Throws what `runtime` and `Device::create_stream` throw.
  Stream& arrivals();
  [[nodiscard]] bool is_running() const noexcept { return runtime_ != nullptr; }
  [[nodiscard]] bool has_ended() const noexcept { return ended_; }
  [[nodiscard]] bool is_owner() const noexcept { return owner_ == std::this_thread::get_id(); }
  /// Ends this process's part. After a failure the other processes are not waited for.
  void end(bool failed);

  /// Starts a program of chares, collectively over the job. Throws what `Chares` throws.
  void begin_program(const ChareOptions& options);
  /// Destroys the chares of this process, wherever the program is.
  void end_program();
  /// Throws invalid_argument where no program runs.
  [[nodiscard]] Chares& chares();
  /// Of the one that runs: how many have been started here.
  [[nodiscard]] unsigned program_number() const noexcept { return programs_; }
  [[nodiscard]] bool has_program() const noexcept { return chares_ != nullptr; }
  /// While it lives an entry that is no coroutine is on the stack: it must not wait.
  class EntryScope {
   public:
    EntryScope() noexcept : before_(std::exchange(get().current, nullptr)) { ++get().entries_; }
    EntryScope(const EntryScope&) = delete;
    EntryScope& operator=(const EntryScope&) = delete;
    ~EntryScope() {
      --get().entries_;
      get().current = before_;
    }

   private:
    Task* before_;
  };
  [[nodiscard]] bool in_entry() const noexcept { return entries_ != 0; }
  /// Told once, in a turn, that the program has ended.
  void on_program_end(Awaitable& awaitable) noexcept { program_end_ = &awaitable; }

  /// From sinks and timers, with or without the GIL.
  void ended(Awaitable& awaitable) noexcept {
    if (!FinishedList::linked(awaitable)) finished_.push_back(awaitable);
  }
  void forget(Awaitable& awaitable) noexcept {
    if (FinishedList::linked(awaitable)) finished_.remove(awaitable);
  }
  [[nodiscard]] bool has_finished() const noexcept { return !finished_.empty(); }
  /// Goes on with everything that ended. With the GIL.
  void drain();

  /// Moves the network, with the GIL, and drains: true if anything happened. For as long as nothing does, until `spin`
  /// is over.
  bool turn(std::chrono::nanoseconds spin);
  /// Waits without the GIL until something has ended, a signal came or 100 ms are over; then drains. Throws what a
  /// handler of a signal raised.
  void sleep();
  /// For another event loop, after a turn in which nothing happened: seconds to sleep at most on `fd`; 0: not at all.
  double arm();

  /// What may not be destroyed where its owner is: in another thread it waits for this process's next turn, after the
  /// end for ever.
  void bury(std::shared_ptr<void> remains);

  Task* current = nullptr;  ///< Of brant's own loop, while it runs a step.

 private:
  using FinishedList = IntrusiveList<Awaitable, &Awaitable::hook_>;

  void clear_graves();
  [[nodiscard]] unsigned progress();

  std::thread::id owner_{};
  bool starting_ = false;
  bool ended_ = false;
  std::unique_ptr<Exchange> exchange_;  ///< Outlives the runtime.
  std::unique_ptr<Runtime> runtime_;
  std::optional<Stream> arrivals_;
  std::unique_ptr<Chares> chares_;
  Awaitable* program_end_ = nullptr;
  unsigned entries_ = 0;
  unsigned programs_ = 0;
  std::chrono::milliseconds condition_pause_{1};  ///< Of another loop, while chares wait for conditions.
  FinishedList finished_;
  std::mutex graves_mutex_;
  std::vector<std::shared_ptr<void>> graves_;
};

}  // namespace brant::python
