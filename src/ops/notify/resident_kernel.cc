#include "ops/notify/resident_kernel.h"

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "base/log.h"
#include "base/seconds.h"
#include "ops/notify/surroundings.h"
#include "ops/notify/table.h"

namespace brant {
namespace {

constexpr auto kCloseMax = std::chrono::seconds(5);
constexpr unsigned kLines = 4;
/// How often, in polls, the driver is asked whether a kernel that runs is still well.
constexpr unsigned kPollsPerCheck = 4096;

std::uint64_t load(const std::uint64_t& word) noexcept {
  return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}
void store(const std::uint64_t& word, std::uint64_t value) noexcept {
  std::atomic_ref(const_cast<std::uint64_t&>(word)).store(value, std::memory_order_release);
}

std::uint64_t as_ns(std::chrono::nanoseconds patience) noexcept {
  return patience == Worker::kForever ? 0 : static_cast<std::uint64_t>(patience.count());
}

}  // namespace

ResidentKernel::Watch::Watch(ResidentKernel& kernel_in) noexcept : kernel(kernel_in) {
  cancel = [](OpOwner& self) noexcept {
    auto& watch = static_cast<Watch&>(self);
    watch.kernel.engine_.completions().finish(watch, {Status::canceled, 0});
  };
}

ResidentKernel::ResidentKernel(NotifyTable& table, BellBoard& board) noexcept
    : table_(table), board_(board), engine_(table.engine()), started_(*this), ended_(*this) {
  board_.note_kernel(+1);
}

ResidentKernel::~ResidentKernel() {
  engine_.pollers().detach(*this);
  if (left()) return;
  if (stream_ != nullptr) engine_.device().streams()->destroy_stream(stream_);
  for (unsigned i = 0; i < std::min(taken_, kLines); ++i) board_.give_line(lines_[i]);
  if (taken_ == kLines + 1) board_.give_unit(unit_);
  board_.note_kernel(-1);
}

// Launched
// -------------------------------------------------------------------------------------------------------------------

void ResidentKernel::check(port::Kernel* kernel, const LaunchShape& shape, std::uint64_t largest_fan_in) {
  port::Device& device = engine_.device();
  const std::string& name = options_.name;
  const std::string& on = device.capabilities().name;
  if (device.kernels() == nullptr || !device.capabilities().cooperative) {
    throw Error(Status::not_supported,
                fmt::format("kernel '{}' cannot stay on '{}': that cannot run all blocks of a grid at once", name, on));
  }
  if (const std::string why = why_none_can_stay(table_.surroundings()); !why.empty())
    throw Error(Status::not_supported, fmt::format("kernel '{}' {}", name, why));
  if (largest_fan_in > shape.blocks()) {
    throw Error(Status::invalid_argument,
                fmt::format("kernel '{}' has {} blocks and a fan-in of {} arrivals, which would never ring: make the "
                            "fan-in of as many as arrive",
                            name, shape.blocks(), largest_fan_in));
  }
  const unsigned fit = device.kernels()->blocks_at_once(kernel, shape).or_throw("a persistent kernel was not launched");
  if (fit == 0) {
    const std::uint64_t threads = std::uint64_t{shape.block[0]} * shape.block[1] * shape.block[2];
    throw Error(
        Status::limit_reached,
        fmt::format("kernel '{}' cannot run on '{}': a block of {} threads takes more registers or shared memory "
                    "than there are. Launch smaller blocks, or compile it with __launch_bounds__({})",
                    name, on, threads, threads));
  }
  const double held = table_.held();
  share_ = static_cast<double>(shape.blocks()) / fit;
  if (share_ + held > 1.0) {
    throw Error(
        Status::limit_reached,
        fmt::format("kernel '{}' of {} blocks does not fit on '{}': {} such blocks run at once, and {:.0f} % of "
                    "the device is held by others ({}). Launch fewer or smaller blocks",
                    name, shape.blocks(), on, fit, 100 * held, table_.describe_kernels()));
  }
}

void ResidentKernel::take_memory() {
  const char* const failed = "no room for a persistent kernel among the bells (NotifierOptions::others)";
  for (std::uint32_t& line : lines_) {
    line = board_.take_line().or_throw(failed);
    ++taken_;
  }
  unit_ = board_.take_unit().or_throw(failed);
  ++taken_;
  control_.told = reinterpret_cast<notify::Told*>(board_.line(lines_[0]));
  control_.asked = reinterpret_cast<const notify::Asked*>(board_.line(lines_[1]));
  for (unsigned i = 0; i < 2; ++i) {
    control_.slots[i] = reinterpret_cast<const notify::ItemSlot*>(board_.line(lines_[2 + i]));
  }
  control_.together = reinterpret_cast<notify::Together*>(board_.unit(unit_));
  control_.patience_ns = as_ns(options_.patience);
}

void ResidentKernel::launch(port::Kernel* kernel, const LaunchShape& shape, const PersistentOptions& options,
                            std::uint64_t largest_fan_in, std::span<void* const> arguments) {
  options_ = options;
  check(kernel, shape, largest_fan_in);
  take_memory();
  port::Device& device = engine_.device();
  stream_ = device.streams()->create_stream(port::StreamPriority::high).or_throw("a persistent kernel has no stream");
  std::vector<void*> all{&control_};
  all.insert(all.end(), arguments.begin(), arguments.end());
  engine_.late_frees().note_kernel();  // before it runs, so that nobody frees memory meanwhile
  const Status launched = device.kernels()->launch_cooperative(kernel, shape, all.data(), stream_);
  if (launched != Status::ok) {
    engine_.late_frees().note_end();
    throw Error(launched, fmt::format("kernel '{}' of {} blocks was not launched on '{}'", options.name, shape.blocks(),
                                      device.capabilities().name));
  }
  state_ = State::starting;
  start_until_ = deadline_after(options.start_patience);
  engine_.deferrals().note_waiting_kernels(+1);
  engine_.pollers().attach(*this);
}

// Watched
// -------------------------------------------------------------------------------------------------------------------

Status ResidentKernel::post_started(Op& op) noexcept {
  if (started_.observed()) return Status::invalid_argument;
  if (state_ == State::running) return Status::ok;
  if (state_ == State::ended) return load(control_.told->started) != 0 ? Status::ok : outcome_;
  started_.own(engine_.completions(), op);
  return Status::in_progress;
}

Status ResidentKernel::post_ended(Op& op) noexcept {
  if (ended_.observed()) return Status::invalid_argument;
  if (state_ == State::ended) return outcome_;
  ended_.own(engine_.completions(), op);
  return Status::in_progress;
}

unsigned ResidentKernel::poll() noexcept { return state_ == State::starting ? look_for_start() : look_for_end(); }

/// A kernel need not start while the CPU only looks at memory: the driver is asked each time.
unsigned ResidentKernel::look_for_start() noexcept {
  const Status stream = engine_.device().streams()->poll(stream_);
  if (load(control_.told->started) != 0) {
    state_ = State::running;
    engine_.completions().finish(started_, {Status::ok, 0});
    return 1 + look_for_end();
  }
  if (stream != Status::in_progress) {
    on_ended(stream == Status::ok ? Status::internal : stream);
    return 1;
  }
  if (started_.observed() && Clock::now() > start_until_) {
    log::error("kernel '{}' does not run {:.1f} s after its launch on '{}': other work may hold the device ({}){}",
               options_.name, in_seconds(options_.start_patience), engine_.device().capabilities().name,
               table_.describe_kernels(), table_.describe_suspects());
    engine_.completions().finish(started_, {Status::timed_out, 0});
    return 1;
  }
  return 0;
}

unsigned ResidentKernel::look_for_end() noexcept {
  const bool says_so = load(control_.told->ended) != 0;
  if (!says_so && ++looks_ % kPollsPerCheck != 0) return 0;
  const Status stream = engine_.device().streams()->poll(stream_);
  if (stream == Status::in_progress) return 0;
  on_ended(stream == Status::ok ? how_it_ended() : stream);
  return 1;
}

Status ResidentKernel::how_it_ended() const noexcept {
  const notify::Told& told = *control_.told;
  const auto failed = static_cast<notify::Waited>(load(told.failed));
  if (failed == notify::Waited::timed_out) {
    log::error("kernel '{}' gave up after {:.1f} s: bell {} has not reached epoch {}, it saw {}{}", options_.name,
               in_seconds(options_.patience), load(told.waits_for), told.wanted, told.seen, table_.describe_suspects());
    return Status::timed_out;
  }
  return failed == notify::Waited::aborted || load(control_.asked->abort) != 0 ? Status::canceled : Status::ok;
}

void ResidentKernel::on_ended(Status status) noexcept {
  if (status != Status::ok && status != Status::timed_out && status != Status::canceled) {
    log::error("kernel '{}' ended on '{}' otherwise than it should: {}", options_.name,
               engine_.device().capabilities().name, status_text(status));
  }
  outcome_ = status;
  if (state_ == State::starting) {
    const bool ran = load(control_.told->started) != 0;
    engine_.completions().finish(started_, {ran ? Status::ok : status, 0});
  }
  state_ = State::ended;
  engine_.deferrals().note_waiting_kernels(-1);
  engine_.late_frees().note_end();
  engine_.pollers().detach(*this);
  engine_.completions().finish(ended_, {status, 0});
}

std::string ResidentKernel::describe() const {
  const char* what = state_ == State::starting ? "has not started" : state_ == State::running ? "runs" : "has ended";
  return fmt::format("kernel '{}' {}", options_.name, what);
}

// Told
// -------------------------------------------------------------------------------------------------------------------

std::uint64_t ResidentKernel::done() const noexcept { return control_.told == nullptr ? 0 : load(control_.told->done); }

Status ResidentKernel::submit(const notify::Item& item) noexcept {
  if (quit_ || !runs()) return Status::invalid_argument;
  if (submitted_ - done() >= notify::kItems) return Status::limit_reached;
  const std::uint64_t number = submitted_ + 1;
  auto& slot = const_cast<notify::ItemSlot&>(*notify::slot_of(control_, number));
  for (unsigned i = 0; i < 4; ++i) {
    std::atomic_ref(slot.lines[i].word).store(item.words[i], std::memory_order_relaxed);
    store(slot.lines[i].number, number);
  }
  submitted_ = number;
  store(control_.asked->items, number);
  return Status::ok;
}

void ResidentKernel::quit() noexcept {
  quit_ = true;
  if (control_.asked != nullptr) store(control_.asked->quit, 1);
}

void ResidentKernel::abort() noexcept {
  quit_ = true;
  if (control_.asked != nullptr) store(control_.asked->abort, 1);
}

void ResidentKernel::close() noexcept {
  if (!runs()) return;
  abort();
  port::Streams& streams = *engine_.device().streams();
  const TimePoint until = Clock::now() + kCloseMax;
  Status stream = streams.poll(stream_);
  while (stream == Status::in_progress && Clock::now() < until) {
    std::this_thread::yield();
    stream = streams.poll(stream_);
  }
  if (stream != Status::in_progress) return on_ended(stream == Status::ok ? Status::canceled : stream);
  log::error(
      "kernel '{}' does not end {:.0f} s after it was aborted: it is left on the device with its memory. Let "
      "its loops look at KernelLife::aborted, or wait by notify::wait",
      options_.name, in_seconds(kCloseMax));
  engine_.late_frees().note_left();
  engine_.pollers().detach(*this);
  engine_.completions().finish(started_, {Status::canceled, 0});
  engine_.completions().finish(ended_, {Status::timed_out, 0});
}

}  // namespace brant
