// Kernels that stay on a device: started, given work, ended, and stuck.
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "brant/core/device.h"
#include "brant/core/runtime.h"
#include "brant/notify.h"
#include "port/memory.h"
#include "support/gpu_of_tests.h"
#include "support/in_process_job.h"
#include "support/kernels/kernels.h"

namespace brant::test {
namespace {

using namespace std::chrono_literals;
JobOptions one_device() {
  JobOptions options;
  options.ranks = 1;
  options.gpu = gpu_of_tests();
  return options;
}

class PersistentKernels : public testing::Test {
 protected:
  Runtime& runtime() { return job_.rank(0); }
  Status outcome(const Operation& operation) { return job_.outcome(operation).status; }
  static LaunchShape blocks(unsigned count) {
    LaunchShape shape;
    shape.grid[0] = count;
    return shape;
  }
  PersistentKernel passing(unsigned count, unsigned arrivals, const PersistentOptions& options) {
    return PersistentKernel::launch(notifier_, passing_, blocks(count), options, go_.device(), gone_.device(),
                                    notifier_.fan_in(arrivals));
  }

  InProcessJob job_{one_device()};
  AddItemsKernel adding_ = add_items_kernel(runtime().device());
  PassOnKernel passing_ = pass_on_kernel(runtime().device());
  Notifier notifier_{runtime(), {.bells = 16, .others = 32}};
  Bell go_ = notifier_.make({.rung_by = RungBy::host, .seen_by = SeenBy::device});
  Bell gone_ = notifier_.make();
};

TEST_F(PersistentKernels, do_all_items_and_end) {
  Memory sums = runtime().allocate(device_memory(), 4 * sizeof(std::uint64_t));
  std::array<std::uint64_t, 4> found{};
  runtime().copy(sums, std::span<std::uint64_t>(found));
  auto kernel = PersistentKernel::launch(notifier_, adding_, blocks(4), {.name = "adds"}, sums.as<std::uint64_t>());
  EXPECT_EQ(outcome(kernel.started()), Status::ok);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    ASSERT_TRUE(job_.run_until([&] { return kernel.submit({{i, 0, 0, 0}}) == Status::ok; }));
  }
  kernel.quit();
  EXPECT_EQ(kernel.submit({}), Status::invalid_argument);
  EXPECT_EQ(outcome(kernel.ended()), Status::ok);
  EXPECT_EQ(kernel.done(), 100u);
  runtime().copy(std::span<std::uint64_t>(found), sums);
  EXPECT_EQ(found, (std::array<std::uint64_t, 4>{5050, 5050, 5050, 5050}));
}

TEST_F(PersistentKernels, pass_bells_on_by_their_last_block) {
  PersistentKernel kernel = passing(3, 3, {.name = "passes"});
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    Operation answer = gone_.when(epoch);
    job_.run(5);
    EXPECT_FALSE(answer.done());
    ASSERT_EQ(go_.ring(epoch), Status::ok);
    EXPECT_EQ(outcome(answer), Status::ok);
  }
  EXPECT_EQ(outcome(kernel.ended()), Status::ok);
}

TEST_F(PersistentKernels, that_wait_in_vain_give_up_and_say_for_what) {
  PersistentKernel kernel = passing(2, 2, {.name = "waits", .patience = 20ms});
  testing::internal::CaptureStderr();
  EXPECT_EQ(outcome(kernel.ended()), Status::timed_out);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("kernel 'waits' gave up"), std::string::npos) << log;
  EXPECT_NE(log.find("bell " + std::to_string(go_.number()) + " has not reached epoch 1, it saw 0"), std::string::npos)
      << log;
}

TEST_F(PersistentKernels, end_when_they_are_aborted) {
  PersistentKernel kernel = passing(2, 2, {.name = "waits", .patience = Worker::kForever});
  EXPECT_EQ(outcome(kernel.started()), Status::ok);
  kernel.abort();
  EXPECT_EQ(outcome(kernel.ended()), Status::canceled);
}

TEST_F(PersistentKernels, that_are_destroyed_end_and_tell_who_waits) {
  Operation* wait = nullptr;
  auto kernel = std::make_unique<PersistentKernel>(passing(2, 2, {.name = "waits", .patience = Worker::kForever}));
  Operation ended = kernel->ended();
  wait = &ended;
  kernel.reset();
  EXPECT_EQ(outcome(*wait), Status::canceled);
}

TEST_F(PersistentKernels, with_a_fan_in_larger_than_the_grid_are_refused) {
  EXPECT_THROW(passing(2, 3, {.name = "waits"}), Error);
}

TEST_F(PersistentKernels, that_do_not_fit_on_the_device_are_refused) {
  EXPECT_THROW(passing(60'000, 2, {.name = "large"}), Error);
  const unsigned fit = runtime().device().inner().kernels()->blocks_at_once(passing_.inner(), blocks(1)).value();
  PersistentKernel first = passing(fit, fit, {.name = "all of it"});
  EXPECT_THROW(passing(1, 1, {.name = "one more"}), Error);
  first.close();
  PersistentKernel second = passing(1, 1, {.name = "one more"});
  EXPECT_EQ(outcome(second.started()), Status::ok);
}

TEST_F(PersistentKernels, that_stay_keep_memory_that_is_given_back) {
  port::Device& device = runtime().device().inner();
  PersistentKernel first = passing(2, 2, {.name = "first", .patience = Worker::kForever});
  PersistentKernel second = passing(2, 2, {.name = "second", .patience = Worker::kForever});
  std::optional<Memory> memory = runtime().allocate(device_memory(), 4096);
  void* const data = memory->data();
  memory.reset();
  first.close();
  testing::internal::CaptureStderr();
  runtime().tidy();  // which would wait for the second one
  EXPECT_NE(testing::internal::GetCapturedStderr().find("nothing is tidied up while a kernel stays"),
            std::string::npos);
  EXPECT_TRUE(device.query(data).ok());
  memory = runtime().allocate(device_memory(), 4096);
  EXPECT_EQ(memory->data(), data);
  memory.reset();
  second.abort();
  EXPECT_EQ(outcome(second.ended()), Status::canceled);
  runtime().tidy();
  EXPECT_FALSE(device.query(data).ok());
}

TEST_F(PersistentKernels, that_do_not_end_keep_memory_to_themselves) {
  Memory may_end = runtime().allocate(MemoryKind::pinned, 4096);
  std::atomic_ref word(*may_end.as<std::uint64_t>());
  word.store(0);
  PersistentKernel kernel = PersistentKernel::launch(notifier_, never_listen_kernel(runtime().device()), blocks(1),
                                                     {.name = "deaf"}, may_end.as<std::uint64_t>());
  EXPECT_EQ(outcome(kernel.started()), Status::ok);
  Memory memory = runtime().allocate(device_memory(), 4096);
  void* const data = memory.data();
  memory = {};
  testing::internal::CaptureStderr();
  kernel.close();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("kernel 'deaf' does not end 5 s after it was aborted"),
            std::string::npos);
  memory = runtime().allocate(device_memory(), 4096);
  EXPECT_NE(memory.data(), data);
  word.store(1);
}

TEST_F(PersistentKernels, that_were_not_launched_keep_no_memory) {
  EXPECT_THROW(passing(60'000, 2, {.name = "large"}), Error);
  Memory memory = runtime().allocate(device_memory(), 4096);
  void* const data = memory.data();
  memory = {};
  EXPECT_FALSE(runtime().device().inner().query(data).ok());
}

}  // namespace
}  // namespace brant::test
