#include "brant/device.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/in_process_job.h"

namespace brant {
namespace {

using test::InProcessJob;

std::atomic<bool> g_gate_open{false};

void wait_at_gate() noexcept { g_gate_open.wait(false); }
void add(int* sums, const int* values, int count) noexcept {
  for (int i = 0; i < count; ++i) sums[i] += values[i];
}

/// A kernel that stands in its stream until the gate is opened; at the latest when this goes.
class Gate {
 public:
  Gate(Device device, const Stream& stream) {
    g_gate_open = false;
    const Kernel<> kernel(device, {}, "wait_at_gate", host_version<wait_at_gate>);
    EXPECT_EQ(kernel.launch({}, stream), Status::ok);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { open(); }
  static void open() noexcept {
    g_gate_open = true;
    g_gate_open.notify_all();
  }
};

/// The text of the Error that `action` throws, which must have this status.
template <typename Action>
std::string error_of(Status status, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), status) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

class DeviceTest : public ::testing::Test {
 protected:
  std::vector<unsigned char> bytes_of(const Memory& memory) {
    std::vector<unsigned char> bytes(memory.bytes());
    runtime.copy(std::span<unsigned char>(bytes), memory);
    return bytes;
  }

  InProcessJob job{test::ranks(1, GpuChoice::emulated)};
  Runtime& runtime = job.rank(0);
  Device device = runtime.device();
};

TEST_F(DeviceTest, says_what_it_is) {
  const DeviceInfo info = device.info();
  EXPECT_EQ(info.kind, MemoryKind::emulated);
  EXPECT_EQ(device.kind(), runtime.device_kind());
  EXPECT_EQ(info.name, "emulated");
  EXPECT_GE(info.ordinal, 0);
  EXPECT_FALSE(info.id.empty());
  EXPECT_TRUE(info.streams && info.kernels && info.shares_memory);
}

TEST(Device, is_that_of_the_ordinal_which_the_program_names) {
  ::setenv("BRANT_WIRE", "loopback", 1);
  RuntimeOptions options;
  options.gpu = GpuChoice::emulated;
  options.gpu_ordinal = 3;
  {
    Runtime named(options);
    EXPECT_EQ(named.device().info().ordinal, 3);
  }
  options.gpu_ordinal = -1;
  Runtime first(options);
  EXPECT_EQ(first.device().info().ordinal, 0) << "that of the local rank";
  ::unsetenv("BRANT_WIRE");
}

TEST_F(DeviceTest, stream_works_in_order) {
  Stream stream = device.create_stream();
  const Memory first = runtime.allocate(MemoryKind::emulated, 4096),
               second = runtime.allocate(MemoryKind::emulated, 4096);
  EXPECT_EQ(stream.fill(first, std::byte{7}), Status::ok);
  EXPECT_EQ(stream.copy(second, first), Status::ok);
  EXPECT_EQ(stream.fill(second.part(0, 1), std::byte{9}), Status::ok);
  EXPECT_EQ(stream.synchronize(), Status::ok);
  EXPECT_EQ(stream.poll(), Status::ok);
  std::vector<unsigned char> expected(4096, 7);
  EXPECT_EQ(bytes_of(first), expected);
  expected[0] = 9;
  EXPECT_EQ(bytes_of(second), expected);
}

TEST_F(DeviceTest, copy_that_does_not_fit_is_refused_and_a_shorter_one_is_not) {
  Stream stream = device.create_stream();
  const Memory large = runtime.allocate(MemoryKind::emulated, 4096),
               small = runtime.allocate(MemoryKind::emulated, 256);
  EXPECT_EQ(stream.copy(small, large), Status::invalid_argument);
  EXPECT_EQ(stream.copy(large, small), Status::ok);
  EXPECT_EQ(stream.synchronize(), Status::ok);
}

TEST_F(DeviceTest, event_is_reached_when_the_work_before_it_is_done) {
  Stream stream = device.create_stream();
  Event event = device.create_event();
  EXPECT_EQ(event.poll(), Status::ok) << "nobody has recorded it";
  const Gate gate(device, stream);
  EXPECT_EQ(stream.record(event), Status::ok);
  EXPECT_EQ(event.poll(), Status::in_progress);
  EXPECT_EQ(stream.poll(), Status::in_progress);
  Gate::open();
  EXPECT_EQ(stream.synchronize(), Status::ok);
  EXPECT_EQ(event.poll(), Status::ok);
}

TEST_F(DeviceTest, stream_waits_for_an_event_of_another_and_the_caller_does_not) {
  Stream early = device.create_stream(StreamPriority::high), late = device.create_stream();
  Event event = device.create_event();
  const Gate gate(device, early);
  EXPECT_EQ(early.record(event), Status::ok);
  EXPECT_EQ(late.wait_for(event), Status::ok);
  const Memory memory = runtime.allocate(MemoryKind::emulated, 256);
  EXPECT_EQ(late.fill(memory, std::byte{3}), Status::ok);
  EXPECT_EQ(late.poll(), Status::in_progress);
  Gate::open();
  EXPECT_EQ(late.synchronize(), Status::ok);
  EXPECT_EQ(bytes_of(memory), std::vector<unsigned char>(256, 3));
}

TEST_F(DeviceTest, timing_events_tell_the_time_between_them_and_others_do_not) {
  Stream stream = device.create_stream();
  Event begin = device.create_timing_event(), end = device.create_timing_event(), plain = device.create_event();
  for (Event* event : {&begin, &end, &plain}) EXPECT_EQ(stream.record(*event), Status::ok);
  EXPECT_EQ(stream.synchronize(), Status::ok);
  const Result<double> between = end.us_since(begin);
  ASSERT_TRUE(between.ok());
  EXPECT_GE(*between, 0.0);
  EXPECT_EQ(end.us_since(plain).status(), Status::invalid_argument);
}

TEST_F(DeviceTest, stream_that_is_borrowed_stays_its_owners) {
  Stream own = device.create_stream();
  {
    Stream borrowed = device.borrow_stream(own.native());
    EXPECT_EQ(static_cast<StreamHandle>(borrowed), static_cast<StreamHandle>(own));
    const Gate gate(device, borrowed);
    EXPECT_EQ(own.poll(), Status::in_progress) << "it is the same stream";
    const Stream moved = std::move(borrowed);
  }
  EXPECT_EQ(own.synchronize(), Status::ok) << "it is still there";
  const std::string text =
      error_of(Status::invalid_argument, [&] { static_cast<void>(device.borrow_stream(nullptr)); });
  EXPECT_NE(text.find("CU_STREAM_LEGACY"), std::string::npos) << text;
}

TEST_F(DeviceTest, stream_that_goes_waits_for_its_work) {
  const Memory memory = runtime.allocate(MemoryKind::emulated, 1 << 20);
  {
    Stream stream = device.create_stream();
    EXPECT_EQ(stream.fill(memory, std::byte{5}), Status::ok);
    Stream other = std::move(stream);
    // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
    EXPECT_EQ(stream.poll(), Status::invalid_argument) << "it was moved from";
  }
  EXPECT_EQ(bytes_of(memory), std::vector<unsigned char>(1 << 20, 5));
}

TEST_F(DeviceTest, empty_streams_and_events_refuse_everything) {
  Stream none;
  Event never;
  Stream stream = device.create_stream();
  Event event = device.create_event();
  const Memory memory = runtime.allocate(MemoryKind::emulated, 256);
  EXPECT_EQ(none.copy(memory, memory), Status::invalid_argument);
  EXPECT_EQ(none.fill(memory, std::byte{0}), Status::invalid_argument);
  EXPECT_EQ(none.record(event), Status::invalid_argument);
  EXPECT_EQ(none.wait_for(event), Status::invalid_argument);
  EXPECT_EQ(none.poll(), Status::invalid_argument);
  EXPECT_EQ(none.synchronize(), Status::invalid_argument);
  EXPECT_EQ(stream.record(never), Status::invalid_argument);
  EXPECT_EQ(stream.wait_for(never), Status::invalid_argument);
  EXPECT_EQ(never.poll(), Status::invalid_argument);
  EXPECT_EQ(never.us_since(event).status(), Status::invalid_argument);
}

TEST_F(DeviceTest, kernel_gets_its_arguments_typed) {
  const Kernel<int*, const int*, int> kernel(device, {}, "add", host_version<add>);
  Stream stream = device.create_stream();
  const std::array<int, 3> values = {1, 20, 300};
  const Memory sums = runtime.allocate(MemoryKind::emulated, sizeof(values));
  const Memory added = runtime.allocate(MemoryKind::emulated, sizeof(values));
  EXPECT_EQ(stream.fill(sums, std::byte{0}), Status::ok);
  runtime.copy(added, std::span<const int>(values));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(kernel.launch({}, stream, sums.as<int>(), added.as<int>(), 3), Status::ok);
  }
  std::array<int, 3> result{};
  EXPECT_EQ(stream.copy(std::span<int>(result), sums), Status::ok);
  EXPECT_EQ(stream.synchronize(), Status::ok);
  EXPECT_EQ(result, (std::array<int, 3>{2, 40, 600}));
  EXPECT_EQ(kernel.launch({.grid = {0, 1, 1}}, stream, sums.as<int>(), added.as<int>(), 3), Status::invalid_argument);
  EXPECT_EQ(kernel.launch({}, nullptr, sums.as<int>(), added.as<int>(), 3), Status::invalid_argument);
}

TEST_F(DeviceTest, kernel_that_cannot_be_loaded_is_named) {
  const std::string text = error_of(Status::not_supported, [&] { Kernel<int>(device, {}, "nowhere"); });
  EXPECT_NE(text.find("the kernel nowhere could not be loaded on 'emulated'"), std::string::npos) << text;
  EXPECT_NE(text.find("neither an image nor a host version"), std::string::npos) << text;
}

TEST(DeviceOfTheHost, has_no_streams_and_says_what_to_do) {
  InProcessJob job(test::ranks(1));
  const Device device = job.rank(0).device();
  EXPECT_EQ(device.kind(), MemoryKind::host);
  EXPECT_FALSE(device.info().streams);
  int someones = 0;
  for (const std::string& text : {
           error_of(Status::not_supported, [&] { static_cast<void>(device.create_stream()); }),
           error_of(Status::not_supported, [&] { static_cast<void>(device.create_event()); }),
           error_of(Status::not_supported, [&] { static_cast<void>(device.borrow_stream(&someones)); }),
           error_of(Status::not_supported, [&] { Kernel<>(device, {}, "any"); }),
       }) {
    EXPECT_NE(text.find("'host'"), std::string::npos) << text;
    EXPECT_NE(text.find("BRANT_GPU=emulated"), std::string::npos) << text;
  }
}

TEST(Gpus, are_listed_or_the_reason_is) {
  std::string why_none = "before";
  const std::vector<DeviceInfo> gpus = list_gpus(&why_none);
  EXPECT_EQ(gpus.empty(), !why_none.empty()) << why_none;
  for (const DeviceInfo& gpu : gpus) {
    EXPECT_EQ(gpu.kind, MemoryKind::cuda);
    EXPECT_GE(gpu.ordinal, 0);
    EXPECT_GT(gpu.memory_bytes, 0u) << gpu.name;
    EXPECT_GT(gpu.architecture, 0) << gpu.name;
  }
}

}  // namespace
}  // namespace brant
