#include "brant/core/stream_done.h"

#include <array>
#include <atomic>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "brant/core/device.h"
#include "brant/core/future.h"
#include "core/engine.h"
#include "port/memory.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using test::InProcessJob;

std::atomic<bool> g_open{false};

/// A stream whose work stands still until it is let go.
class HeldStream {
 public:
  explicit HeldStream(Runtime& runtime) : device_(runtime.device().inner()) {
    g_open = false;
    stream = device_.streams()->create_stream(port::StreamPriority::normal).value();
    port::KernelSource source;
    source.symbol = "held";
    source.on_host = [](const port::HostLaunch&) noexcept { g_open.wait(false); };
    port::Kernel* kernel = device_.kernels()->load(source).value();
    EXPECT_EQ(device_.kernels()->launch(kernel, {}, nullptr, stream), Status::ok);
  }
  ~HeldStream() {
    let_go();
    device_.streams()->destroy_stream(stream);
  }
  static void let_go() {
    g_open = true;
    g_open.notify_all();
  }

  port::Stream* stream = nullptr;

 private:
  port::Device& device_;
};

TEST(StreamDone, that_is_given_up_does_not_wait_for_the_stream) {
  InProcessJob job(test::ranks(1, GpuChoice::emulated));
  HeldStream held(job.rank(0));
  {
    const auto waits = [&]() -> Task<void> { co_await stream_done(job.rank(0), held.stream); };
    Task<void> task = waits();
    task.start();
  }  // the stream is held as long as this test wants: to wait for it would never end
  job.run(10);
  HeldStream::let_go();
  bool done = false;
  const auto again = [&]() -> Task<void> {
    co_await stream_done(job.rank(0), held.stream);
    done = true;
  };
  Task<void> task = again();
  task.start();
  EXPECT_TRUE(job.run_until([&] { return done; }));
}

/// As a member, or behind a pointer: g++ 12 would copy what is an awaiter itself.
TEST(StreamDone, may_begin_in_one_place_and_be_awaited_in_another) {
  InProcessJob job(test::ranks(1, GpuChoice::emulated));
  HeldStream held(job.rank(0));
  std::optional<stream_done> ended;
  ended.emplace(job.rank(0), held.stream);
  bool done = false;
  const auto waits = [&]() -> Task<void> {
    co_await *ended;
    done = true;
  };
  Task<void> task = waits();
  task.start();
  job.run(10);
  EXPECT_FALSE(done);
  HeldStream::let_go();
  EXPECT_TRUE(job.run_until([&] { return done; }));
}

class CountingPoller final : public Poller {
 public:
  unsigned poll() noexcept override {
    polling = true;
    if (inside) *inside = true;
    polling = false;
    return 0;
  }
  bool polling = false;
  bool* inside = nullptr;
};

TEST(StreamDone, resumes_when_all_pollers_of_the_round_have_run) {
  InProcessJob job(test::ranks(1, GpuChoice::emulated));
  Engine& engine = job.rank(0).worker().engine();
  HeldStream held(job.rank(0));
  bool later_polled = false, done = false, polled_before = false;
  CountingPoller later;
  const auto waits = [&]() -> Task<void> {
    co_await stream_done(job.rank(0), held.stream);
    polled_before = later_polled;
    engine.pollers().detach(later);
    done = true;
  };
  Task<void> task = waits();
  task.start();
  later.inside = &later_polled;
  engine.pollers().attach(later);  // behind the one that looks at the stream
  HeldStream::let_go();
  ASSERT_TRUE(job.run_until([&] {
    const bool so_far = done;
    if (!so_far) later_polled = false;
    return so_far;
  }));
  EXPECT_TRUE(polled_before);
}

TEST(StreamDone, may_be_destroyed_when_it_is_due) {
  InProcessJob job(test::ranks(1, GpuChoice::emulated));
  HeldStream held(job.rank(0));
  std::array<std::optional<Task<void>>, 2> tasks;
  int resumed = 0;
  const auto ends_the_other = [&](std::size_t other) -> Task<void> {
    co_await stream_done(job.rank(0), held.stream);
    ++resumed;
    tasks[other].reset();
  };
  tasks[0].emplace(ends_the_other(1));
  tasks[1].emplace(ends_the_other(0));
  for (auto& task : tasks) task->start();
  HeldStream::let_go();
  ASSERT_TRUE(job.run_until([&] { return resumed != 0; }));
  job.run(100);
  EXPECT_EQ(resumed, 1);
}

}  // namespace
}  // namespace brant
