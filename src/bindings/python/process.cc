#include "bindings/python/process.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "bindings/python/channel.h"
#include "bindings/python/errors.h"
#include "bindings/python/global_memory.h"
#include "bindings/python/halo.h"
#include "bindings/python/meeting.h"
#include "bindings/python/member.h"
#include "bindings/python/pickle_seal.h"
#include "bindings/python/remote_calls.h"
#include "bindings/python/team.h"
#include "brant/core/start_via.h"
#include "brant/device.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

/// How long a signal may wait for its handler while this process sleeps.
constexpr auto kPiece = std::chrono::milliseconds(100);
/// How long a condition may hold before it is looked at, under another loop that sleeps: the longer nothing has
/// happened, the longer.
constexpr auto kShortestPause = std::chrono::milliseconds(1), kLongestPause = std::chrono::milliseconds(10);
/// How many calls of progress that see nothing lie between two looks at the clock.
constexpr unsigned kLooksBetweenTimes = 16;

/// A Runtime that is destroyed while an exception unwinds does not wait for the other processes, which is what a
/// process wants that has failed: they learn of its death at once.
void leave_without_waiting(std::unique_ptr<Runtime> runtime) noexcept {
  struct Leaving : std::exception {};
  try {
    const std::unique_ptr<Runtime> going = std::move(runtime);
    throw Leaving{};
  } catch (const Leaving&) {
    return;
  }
}

/// What goes wrong in here (memory, mostly) must not be lost, nor reach somebody else's await.
void go_on(Awaitable& awaitable) {
  const nb::object keeps = nb::borrow(awaitable.self());
  const bool went_well = guarded(
      [&] {
        awaitable.advance();
        return true;
      },
      false);
  if (went_well) return;
  PyErr_WriteUnraisable(awaitable.self());
  if (!awaitable.has_answer()) awaitable.give_up(Status::internal);
}

/// A warning of Python, which a program can filter or have raised; brant runs all the same.
void warn_of_foreign_library(const Runtime& runtime) {
  if (runtime.network_remark().empty()) return;
  const nb::object category = nb::module_::import_("brant._errors").attr("ForeignLibraryWarning");
  if (PyErr_WarnEx(category.ptr(), runtime.network_remark().c_str(), 1) != 0) throw nb::python_error();
}

}  // namespace

Process& Process::get() {
  static Process* const only = new Process;  // never destroyed: objects of Python may outlive everything else
  return *only;
}

Runtime& Process::runtime() {
  if (runtime_ == nullptr) start(std::nullopt, std::nullopt);
  if (!is_owner())
    throw Error(
        Status::not_supported,
        "brant belongs to the thread that started it, and not to children that were forked: call it from there, or "
        "hand the work over to its loop (loop.call_soon_threadsafe in asyncio)");
  return *runtime_;
}

void Process::start(std::optional<GpuChoice> gpu, std::optional<Joining> joining, std::unique_ptr<Exchange> exchange) {
  if (ended_) throw Error(Status::shutting_down, "brant has ended in this process, and starts once in a process");
  if (starting_)
    throw Error(Status::not_supported,
                "another thread starts brant at this moment, and brant belongs to the thread that starts it: call "
                "brant.init there before other threads run");
  if (runtime_ != nullptr) {
    if (gpu || joining || exchange)
      throw Error(Status::invalid_argument, "brant is running already: call brant.init before anything else of it");
    return;
  }
  RuntimeOptions options = RuntimeOptions::from_environment();
  if (gpu) options.gpu = *gpu;
  if (joining) options.joining = *joining;
  {
    struct Starting {
      bool& flag;
      explicit Starting(bool& of) noexcept : flag(of) { flag = true; }
      Starting(const Starting&) = delete;
      Starting& operator=(const Starting&) = delete;
      ~Starting() { flag = false; }
    };
    const Starting starting(starting_);  // read and written with the GIL
    const nb::gil_scoped_release others_run;
    runtime_ = exchange != nullptr ? start_via(*exchange, options) : std::make_unique<Runtime>(options);
  }
  exchange_ = std::move(exchange);
  owner_ = std::this_thread::get_id();
  make_pickle_seal(*runtime_);
  begin_remote_calls(*runtime_);
  // In a child nobody owns it: what it does at its end would reach into what its parent uses.
  static_cast<void>(::pthread_atfork(nullptr, nullptr, [] { Process::get().owner_ = {}; }));
  warn_of_foreign_library(*runtime_);
}

Stream& Process::arrivals() {
  if (!arrivals_) arrivals_ = runtime().device().create_stream();
  return *arrivals_;
}

void Process::end(bool failed) {
  if (runtime_ == nullptr || !is_owner()) return;
  Meeting::give_up_all();
  close_halos();
  close_teams();
  if (!failed) close_channels();
  end_remote_calls();
  close_space();
  end_program();
  drain();
  clear_graves();
  arrivals_.reset();
  ended_ = true;
  {
    const nb::gil_scoped_release others_run;
    if (failed) return leave_without_waiting(std::move(runtime_));
    runtime_->leave();
  }
  // Arrays that the program still has lie in its memory, and are looked at until the interpreter has gone.
  [[maybe_unused]] static Runtime* const left = runtime_.release();
}

void Process::begin_program(const ChareOptions& options) {
  if (chares_ != nullptr)
    throw Error(Status::invalid_argument, "a program of chares runs in this process already: await it before the next");
  chares_ = std::make_unique<Chares>(runtime(), options);
  ++programs_;
  // It ends when `exit` is called: the main coroutine is one of Python.
  chares_->start([](Chares& chares) -> brant::Task<void> { co_await chares.until_exit(); }(*chares_));
}

void Process::end_program() {
  program_end_ = nullptr;
  if (chares_ == nullptr) return;
  if (chares_->ended()) chares_->run([]() -> brant::Task<void> { co_return; }());  // what is urgent leaves
  chares_.reset();
}

Chares& Process::chares() {
  static_cast<void>(runtime());
  if (chares_ == nullptr)
    throw Error(Status::invalid_argument, "no program of chares runs in this process: see brant.program");
  return *chares_;
}

unsigned Process::progress() {
  if (chares_ == nullptr) return runtime().worker().progress();
  static_cast<void>(runtime());
  const unsigned events = chares_->progress();
  if (chares_->ended() && program_end_ != nullptr) ended(*std::exchange(program_end_, nullptr));
  return events;
}

void Process::drain() {
  while (Awaitable* awaitable = finished_.pop_front()) go_on(*awaitable);
  if (!graves_.empty()) clear_graves();
}

bool Process::turn(std::chrono::nanoseconds spin) {
  const bool looked = Member::is_look_due();
  bool happened = looked && Member::look_at_all();
  happened = progress() != 0 || happened;
  if (!happened && finished_.empty() && spin > std::chrono::nanoseconds(0)) {
    const auto deadline = Clock::now() + spin;
    do {
      for (unsigned look = 0; look < kLooksBetweenTimes && !happened && finished_.empty(); ++look)
        happened = progress() != 0;
    } while (!happened && finished_.empty() && Clock::now() < deadline);
  }
  if (!happened && !looked && Member::any_waits()) happened = Member::look_at_all();  // before it sleeps
  if (Meeting::any_waits()) happened = Meeting::look_at_all() || happened;
  happened = happened || !finished_.empty();
  if (happened) condition_pause_ = kShortestPause;
  drain();
  return happened;
}

void Process::sleep() {
  Worker& worker = runtime().worker();
  {
    const nb::gil_scoped_release others_run;
    // timed_out only means that a piece is over.
    auto something = [this] { return !finished_.empty() || Meeting::any_decided(); };
    if (chares_ != nullptr) {
      chares_->wait(something, kPiece);
    } else {
      static_cast<void>(worker.wait_until(something, kPiece));
    }
  }
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  if (Meeting::any_waits()) Meeting::look_at_all();
  drain();
}

double Process::arm() {
  std::chrono::nanoseconds longest = runtime().worker().arm();
  if (chares_ != nullptr) longest = std::min(longest, chares_->longest_sleep());
  // A coroutine of asyncio may make a condition hold, and nobody tells.
  if (Member::any_waits()) {
    longest = std::min(longest, std::chrono::nanoseconds(condition_pause_));
    condition_pause_ = std::min(2 * condition_pause_, kLongestPause);
  }
  return std::chrono::duration<double>(longest).count();
}

void Process::bury(std::shared_ptr<void> remains) {
  const std::scoped_lock lock(graves_mutex_);
  graves_.push_back(std::move(remains));
}

void Process::clear_graves() {
  std::vector<std::shared_ptr<void>> remains;
  {
    const std::scoped_lock lock(graves_mutex_);
    remains.swap(graves_);
  }
}

}  // namespace brant::python
