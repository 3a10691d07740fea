// Bells that call entries: what a kernel says is a message.
#include "brant/chare/bell_calls.h"
#include "brant/core/kernel.h"
#include "brant/core/timer.h"
#include "brant/notify.h"
#include "unit/chare/program.h"

namespace brant {
namespace {

using test::JobOptions;
using test::Program;
using namespace std::chrono_literals;

void ring_on_host(const HostLaunch& launch) noexcept {
  simt::CpuThread machine(launch.engine_address);
  notify::ring(machine, launch.value<notify::DeviceBell>(0), launch.value<std::uint64_t>(1), notify::Block{});
}
using RingKernel = Kernel<notify::DeviceBell, std::uint64_t>;

/// Has a kernel ring its bell, step by step: the next one is launched by the entry that the ring before called.
class Stepper : public Chare<Stepper, Index<1>> {
 public:
  void begin(std::uint64_t steps, Callback<std::uint64_t, int> done) {
    steps_ = steps;
    done_ = done;
    calls_ = BellCalls(notifier_.make(), callback<&Stepper::rung>(this_element()));
    launch(1);
  }
  /// Of a bell that nobody rings.
  void wait_in_vain(Callback<std::uint64_t, int> done) {
    done_ = done;
    calls_ = BellCalls(notifier_.make(), callback<&Stepper::rung>(this_element()), 7, 20ms);
  }
  void rung(std::uint64_t epoch, Status status) {
    if (status != Status::ok) return done_(epoch, static_cast<int>(status));
    EXPECT_EQ(epoch, ++seen_);
    if (epoch == steps_) {
      calls_.close();
      return done_(seen_, static_cast<int>(Status::ok));
    }
    launch(epoch + 1);
  }
  int closed() { return calls_.is_open() ? 0 : 1; }

 private:
  void launch(std::uint64_t epoch) {
    EXPECT_EQ(kernel_.launch({}, stream_, calls_.bell().device(), epoch), Status::ok);
  }

  Stream stream_ = chares().runtime().device().create_stream();
  RingKernel kernel_{chares().runtime().device(), {}, "ring", &ring_on_host};
  Notifier notifier_{chares().runtime(), {.bells = 16, .others = 2, .waits = 16}};
  BellCalls calls_;
  Callback<std::uint64_t, int> done_;
  std::uint64_t steps_ = 0, seen_ = 0;
};

JobOptions two_devices() {
  JobOptions options = test::ranks(2);
  options.gpu = GpuChoice::emulated;
  return options;
}

Task<int> step(Chares& chares, std::uint64_t steps) {
  const auto steppers = create_array<Stepper>(chares, {2}, Placement::round_robin());
  for (int i = 0; i < 2; ++i) {
    auto [to, outcome] = future_callback<std::uint64_t, int>(chares);
    steppers[i].call<&Stepper::begin>(steps, to);
    const auto [seen, status] = co_await outcome;
    EXPECT_EQ(seen, steps);
    EXPECT_EQ(static_cast<Status>(status), Status::ok);
    EXPECT_EQ(co_await steppers[i].ask<&Stepper::closed>(), 1);
  }
  co_return 5;
}

TEST(BellsOfChares, a_kernel_that_rings_calls_an_entry) {
  Program program(two_devices());
  EXPECT_EQ(program.run(step, std::uint64_t{20}), 5);
  EXPECT_EQ(program.failure(), "");
}

Task<int> wait_in_vain(Chares& chares) {
  const auto steppers = create_array<Stepper>(chares, {2}, Placement::round_robin());
  auto [to, outcome] = future_callback<std::uint64_t, int>(chares);
  steppers[1].call<&Stepper::wait_in_vain>(to);
  const auto [epoch, status] = co_await outcome;
  EXPECT_EQ(epoch, 7u);
  EXPECT_EQ(static_cast<Status>(status), Status::timed_out);
  EXPECT_EQ(co_await steppers[1].ask<&Stepper::closed>(), 1);
  co_return 6;
}

TEST(BellsOfChares, a_bell_that_nobody_rings_calls_with_the_reason) {
  Program program(two_devices());
  EXPECT_EQ(program.run(wait_in_vain), 6);
  EXPECT_EQ(program.failure(), "");
}

/// Rung before anybody waits, twice: one call, with the last epoch. And nothing after the close.
Task<int> ring_early(Chares& chares) {
  Runtime& runtime = chares.runtime();
  Notifier notifier(runtime, {.bells = 16, .others = 2, .waits = 16});
  Stream stream = runtime.device().create_stream();
  const RingKernel kernel(runtime.device(), {}, "ring", &ring_on_host);
  std::vector<std::uint64_t> calls;
  const auto note = Callback<std::uint64_t, Status>::function(
      chares, [&calls](std::uint64_t epoch, Status) { calls.push_back(epoch); });
  Bell bell = notifier.make();
  for (const std::uint64_t epoch : {1, 2}) EXPECT_EQ(kernel.launch({}, stream, bell.device(), epoch), Status::ok);
  EXPECT_EQ(stream.synchronize(), Status::ok);
  BellCalls early(std::move(bell), note);
  BellCalls closed(notifier.make(), note);
  const notify::DeviceBell late = closed.bell().device();
  closed.close();
  EXPECT_EQ(kernel.launch({}, stream, late, std::uint64_t{1}), Status::ok);
  EXPECT_EQ(stream.synchronize(), Status::ok);
  co_await sleep_for(runtime.worker(), 5ms);
  EXPECT_EQ(calls, (std::vector<std::uint64_t>{2}));
  co_return 7;
}

TEST(BellsOfChares, rings_that_came_before_are_one_call) {
  JobOptions options = two_devices();
  options.ranks = 1;
  Program program(options);
  EXPECT_EQ(program.run(ring_early), 7);
  EXPECT_EQ(program.failure(), "");
}

}  // namespace
}  // namespace brant
