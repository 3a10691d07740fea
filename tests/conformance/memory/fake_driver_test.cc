// The CUDA adapter's own work, checked with a stand-in for the driver (fake_cuda_driver.cc). With the real driver, or
// none, these skip.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "conformance/memory/fake_cuda_driver.h"
#include "conformance/memory/memory_fixture.h"
#include "port/memory/devices.h"
#include "port/memory/gpu_topology.h"
#include "port/memory/window_store.h"
#include "support/driver_memory.h"
#include "support/environment.h"

namespace brant::test {
namespace {

constexpr int kLaunchFailed = 719;
constexpr int kDeinitialized = 4;
constexpr int kNotReady = 600;
constexpr int kOutOfMemory = 2;

using Gpu = port::DeviceRequest::Gpu;

/// True where the stand-in is what the name libcuda.so.1 finds. Loads it, but calls nothing.
void* fake_library() {
  static void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library != nullptr && ::dlsym(library, fake_cuda::kCalls) != nullptr ? library : nullptr;
}

template <typename Function>
Function fake(const char* name) {
  return reinterpret_cast<Function>(::dlsym(fake_library(), name));
}

class FakeDriver : public testing::Test {
 protected:
  void SetUp() override {
    if (fake_library() == nullptr) GTEST_SKIP() << "runs with the stand-in for the driver only";
  }
  void TearDown() override {
    if (fake_library() == nullptr) return;
    for (const char* name :
         {"cuMemAlloc", "cuMemcpyAsync", "cuEventQuery", "cuMemFree", "cuDevicePrimaryCtxRelease", "cuCtxGetCurrent",
          "cuDevicePrimaryCtxRetain", "cuIpcOpenMemHandle", "cuPointerGetAttributes"}) {
      fail(name, 0);
    }
    fake<fake_cuda::SetCurrent>(fake_cuda::kSetCurrent)(nullptr);
  }
  static void fail(const char* function, int code) {
    fake<fake_cuda::SetFailure>(fake_cuda::kSetFailure)(function, code);
  }
  static std::uint64_t calls(const char* function) { return fake<fake_cuda::Calls>(fake_cuda::kCalls)(function); }
  static int retained(int device) { return fake<fake_cuda::Retained>(fake_cuda::kRetained)(device); }
  static void* current() { return fake<fake_cuda::GetCurrent>(fake_cuda::kGetCurrent)(); }
  static void set_current(void* context) { fake<fake_cuda::SetCurrent>(fake_cuda::kSetCurrent)(context); }
  static std::unique_ptr<port::Device> open(int ordinal = -1) {
    return port::open_device({.gpu = Gpu::cuda, .ordinal = ordinal});
  }
};

TEST_F(FakeDriver, listing_gpus_makes_no_context) {
  std::string reason;
  const std::vector<port::GpuSummary> gpus = port::list_gpus(&reason);
  ASSERT_EQ(gpus.size(), 2u) << reason;
  EXPECT_EQ(gpus[1].ordinal, 1);
  EXPECT_EQ(gpus[1].name, "Fake GPU 1");
  EXPECT_EQ(gpus[1].uuid, "GPU-00112233-4455-6677-8899-aabbccddee01");
  EXPECT_EQ(gpus[1].pci_bus_id, "0000:1c:00.0");
  EXPECT_EQ(gpus[1].compute_major, 9);
  EXPECT_FALSE(gpus[1].mig);
  EXPECT_EQ(retained(0), 0);
  EXPECT_EQ(retained(1), 0);
  EXPECT_EQ(current(), nullptr);
}

TEST_F(FakeDriver, the_cpu_writes_device_memory_through_a_window) {
  const std::unique_ptr<port::Device> device = open();
  constexpr std::size_t kBytes = 65536;
  void* const memory = device->allocate(MemoryKind::cuda, kBytes).or_throw("memory");
  void* const window = device->open_host_window(memory, kBytes).or_throw("window");
  EXPECT_NE(window, memory);
  port::store_to_window(*static_cast<std::uint64_t*>(window), 7);
  EXPECT_EQ(*static_cast<std::uint64_t*>(memory), 7u) << "memory of the stand-in is the CPU's";
  device->close_host_window(window, kBytes);
  EXPECT_EQ(device->open_host_window(memory, 2 * kBytes).status(), Status::invalid_argument);
  fail("cuMemGetHandleForAddressRange", 801);  // as a driver without dma-buf
  EXPECT_EQ(device->open_host_window(memory, kBytes).status(), Status::not_supported);
  fail("cuMemGetHandleForAddressRange", 0);
  EXPECT_EQ(device->free(memory), Status::ok);
}

/// As while PyTorch records a graph and this thread makes progress.
TEST_F(FakeDriver, a_capture_elsewhere_is_not_broken) {
  const std::unique_ptr<port::Device> device = open();
  port::Streams& streams = *device->streams();
  port::Stream* const stream = streams.create_stream(port::StreamPriority::high).or_throw("stream");
  port::Event* const event = streams.create_event(false).or_throw("event");
  ASSERT_EQ(streams.record(event, stream), Status::ok);
  const auto capture = fake<fake_cuda::Capture>(fake_cuda::kCapture);
  capture(true);
  EXPECT_EQ(streams.poll(event), Status::ok);
  EXPECT_EQ(streams.poll(stream), Status::ok);
  EXPECT_EQ(streams.synchronize(stream), Status::ok);
  for (const MemoryKind kind : {MemoryKind::cuda, MemoryKind::pinned}) {
    void* const memory = device->allocate(kind, 4096).or_throw("memory");
    EXPECT_EQ(device->free(memory), Status::ok);
  }
  EXPECT_FALSE(capture(true)) << "something that captures forbid was called";
  void* query = nullptr;
  int outcome = 0;
  fake<int (*)(const char*, void**, int, std::uint64_t, int*)>("cuGetProcAddress_v2")("cuEventQuery", &query, 2000, 1,
                                                                                      &outcome);
  EXPECT_EQ(reinterpret_cast<int (*)(void*)>(query)(event), 900)
      << "what the program itself calls is forbidden as before";
  EXPECT_TRUE(capture(false));
  streams.destroy_event(event);
  streams.destroy_stream(stream);
}

TEST_F(FakeDriver, links_between_gpus_are_described_without_a_context) {
  using namespace port::memory;
  const GpuTopology topology = probe_gpu_topology(probe_cuda());
  ASSERT_EQ(topology.links.size(), 2u);
  for (const GpuLink& link : topology.links) {
    EXPECT_EQ(link_name(link), "NV6");
    EXPECT_EQ(link.access, true);
    EXPECT_EQ(link.atomics, true);
    EXPECT_EQ(link.arrays, false);
    EXPECT_EQ(link.pcie, PcieWay::system);
  }
  EXPECT_TRUE(topology.gaps.empty()) << topology.gaps.front();
  EXPECT_EQ(retained(0) + retained(1), 0);
  EXPECT_EQ(current(), nullptr);
  const auto started =
      reinterpret_cast<int (*)()>(::dlsym(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL), "fake_nvml_started"));
  ASSERT_NE(started, nullptr);
  EXPECT_EQ(started(), 0) << "NVML is let go";
}

TEST_F(FakeDriver, opening_one_gpu_touches_no_other_and_closing_lets_go) {
  {
    const auto device = open(1);
    EXPECT_EQ(device->capabilities().ordinal, 1);
    EXPECT_EQ(retained(0), 0);
    EXPECT_EQ(retained(1), 1);
    const Piece piece(*device, MemoryKind::cuda, 64);
    EXPECT_EQ(device->query(piece.at())->device, 1);
  }
  EXPECT_EQ(retained(1), 0);
}

TEST_F(FakeDriver, the_local_rank_chooses_the_gpu) {
  EXPECT_EQ(port::open_device({.local_rank = 1, .local_size = 2})->capabilities().ordinal, 1);
  EXPECT_THROW(port::open_device({.local_rank = 2, .local_size = 3}), Error);
  EXPECT_EQ(port::open_device({.local_rank = 2, .local_size = 3, .share_gpu = true})->capabilities().ordinal, 0);
}

TEST_F(FakeDriver, the_host_device_asks_the_driver_nothing) {
  const auto host = port::open_device({.gpu = Gpu::none});
  const std::uint64_t before = calls("cuPointerGetAttribute") + calls("cuPointerGetAttributes");
  int on_stack = 0;
  EXPECT_EQ(host->query(&on_stack).status(), Status::not_found);
  EXPECT_EQ(calls("cuPointerGetAttribute") + calls("cuPointerGetAttributes"), before);
}

TEST_F(FakeDriver, a_thread_with_a_context_of_its_own_gets_it_back) {
  const auto device = open(0);
  int something = 0;
  set_current(&something);
  const Piece piece(*device, MemoryKind::cuda, 64);
  EXPECT_EQ(current(), &something);
  const StreamScope stream(*device);
  EXPECT_EQ(device->streams()->fill(piece.at(), std::byte{1}, 64, stream), Status::ok);
  EXPECT_EQ(current(), &something);
}

TEST_F(FakeDriver, a_thread_without_a_context_is_given_one_once) {
  const auto device = open(0);
  std::thread([&] {
    EXPECT_EQ(current(), nullptr);
    const StreamScope stream(*device);
    EXPECT_NE(current(), nullptr);
    const std::uint64_t before = calls("cuCtxSetCurrent") + calls("cuCtxPushCurrent");
    for (int i = 0; i < 10; ++i) EXPECT_EQ(device->streams()->poll(stream), Status::ok);
    EXPECT_EQ(calls("cuCtxSetCurrent") + calls("cuCtxPushCurrent"), before);
  }).join();
}

TEST_F(FakeDriver, a_foreign_pointer_is_asked_about_once_and_its_id_each_time) {
  const auto device = open(0);
  auto* foreign = static_cast<std::byte*>(fake<fake_cuda::ForeignAlloc>(fake_cuda::kForeignAlloc)(10000, false));
  const Result<port::PointerInfo> first = device->query(foreign + 10);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->kind, MemoryKind::cuda);
  EXPECT_EQ(first->base, foreign);
  EXPECT_EQ(first->bytes, 10000u);
  const std::uint64_t before = calls("cuPointerGetAttributes");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(device->query(foreign + i)->buffer_id, first->buffer_id);
  EXPECT_EQ(calls("cuPointerGetAttributes"), before + 10);
  fake<fake_cuda::ForeignFree>(fake_cuda::kForeignFree)(foreign);
  EXPECT_EQ(device->query(foreign).status(), Status::not_found);
  auto* next = static_cast<std::byte*>(fake<fake_cuda::ForeignAlloc>(fake_cuda::kForeignAlloc)(9000, false));
  EXPECT_EQ(next, foreign) << "the test needs the address to come back";
  EXPECT_EQ(device->query(next)->bytes, 9000u);
  EXPECT_NE(device->query(next)->buffer_id, first->buffer_id);
  fake<fake_cuda::ForeignFree>(fake_cuda::kForeignFree)(next);
}

TEST_F(FakeDriver, own_memory_is_known_without_asking) {
  const auto device = open(0);
  const Piece piece(*device, MemoryKind::cuda, 64);
  const std::uint64_t before = calls("cuPointerGetAttribute") + calls("cuPointerGetAttributes");
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(device->query(piece.at(5)).ok());
  EXPECT_EQ(calls("cuPointerGetAttribute") + calls("cuPointerGetAttributes"), before);
}

TEST_F(FakeDriver, memory_that_cannot_be_shared_is_said_to_be_so_once) {
  const auto device = open(0);
  const StreamScope makes_a_context_current(*device);
  const DriverMemory pool(DriverMemory::Sort::default_pool, 4096);
  testing::internal::CaptureStderr();
  EXPECT_EQ(device->export_allocation(pool.at()).status(), Status::not_supported);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "it may be a file";
  testing::internal::CaptureStderr();
  EXPECT_EQ(device->export_file(pool.at()).status(), Status::not_supported);
  EXPECT_EQ(device->export_file(pool.at(100)).status(), Status::not_supported);
  const std::string log = testing::internal::GetCapturedStderr();
  char address[32] = {};
  std::snprintf(address, sizeof(address), "%p", static_cast<void*>(pool.at()));
  for (const std::string& words : {std::string("4096 bytes of GPU memory at ") + address, std::string("cudaMalloc")})
    EXPECT_NE(log.find(words), std::string::npos) << words << " in: " << log;
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << "said once: " << log;
}

TEST_F(FakeDriver, a_place_of_a_pool_that_is_imported_twice_is_there_until_both_are_closed) {
  const auto device = open(0);
  const StreamScope stream(*device);
  const DriverMemory pool(DriverMemory::Sort::pooled, 4096);
  const Result<port::ExportedFile> exported = device->export_file(pool.at());
  ASSERT_TRUE(exported.ok());
  const Result<void*> first = device->import_file(exported->record, exported->file.get());
  const Result<void*> second = device->import_file(exported->record, exported->file.get());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second) << "as the driver does";
  EXPECT_EQ(device->close_import(*first), Status::ok);
  EXPECT_TRUE(device->query(*second).ok()) << "it is used still";
  EXPECT_EQ(device->close_import(*second), Status::ok);
  EXPECT_FALSE(device->query(*second).ok());
  EXPECT_EQ(device->close_import(*second), Status::not_found);
}

TEST_F(FakeDriver, a_file_that_cannot_be_made_now_is_not_refused_for_good) {
  const auto device = open(0);
  const StreamScope makes_a_context_current(*device);
  const DriverMemory pool(DriverMemory::Sort::pooled, 4096), created(DriverMemory::Sort::created, 4096);
  constexpr int kOperatingSystem = 304;
  fail("cuMemPoolExportToShareableHandle", kOperatingSystem);
  fail("cuMemExportToShareableHandle", kOperatingSystem);
  EXPECT_NE(device->export_file(pool.at()).status(), Status::not_supported);
  EXPECT_NE(device->export_file(created.at()).status(), Status::not_supported);
  fail("cuMemPoolExportToShareableHandle", 0);
  fail("cuMemExportToShareableHandle", 0);
  EXPECT_TRUE(device->export_file(pool.at()).ok());
  EXPECT_TRUE(device->export_file(created.at()).ok());
}

TEST_F(FakeDriver, a_foreign_pointer_is_exported_with_its_base) {
  const auto device = open(0);
  auto* foreign = static_cast<std::byte*>(fake<fake_cuda::ForeignAlloc>(fake_cuda::kForeignAlloc)(4096, false));
  const Result<port::ExportRecord> record = device->export_allocation(foreign + 100);
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->offset, 100u);
  EXPECT_EQ(record->bytes, 4096u);
  fake<fake_cuda::ForeignFree>(fake_cuda::kForeignFree)(foreign);
}

TEST_F(FakeDriver, errors_of_the_driver_keep_their_meaning) {
  const auto device = open(0);
  const StreamScope stream(*device);
  const EventScope event(*device);
  const Piece piece(*device, MemoryKind::cuda, 64);
  fail("cuMemAlloc", kOutOfMemory);
  EXPECT_EQ(device->allocate(MemoryKind::cuda, 64).status(), Status::no_memory);
  fail("cuEventQuery", kNotReady);
  EXPECT_EQ(device->streams()->poll(event), Status::in_progress);
  fail("cuMemcpyAsync", kLaunchFailed);
  testing::internal::CaptureStderr();
  EXPECT_EQ(device->streams()->copy(piece.at(), piece.at(32), 8, stream), Status::device_failed);
  EXPECT_EQ(device->streams()->copy(piece.at(), piece.at(32), 8, stream), Status::device_failed);
  const std::string log = testing::internal::GetCapturedStderr();
  const std::string name = "cuMemcpyAsync failed: CUDA_ERROR_LAUNCH_FAILED";
  EXPECT_NE(log.find(name), std::string::npos) << log;
  EXPECT_EQ(log.find(name), log.rfind(name)) << "logged once";
  fail("cuMemcpyAsync", 0);
  EXPECT_EQ(device->streams()->copy(piece.at(), piece.at(32), 8, stream), Status::ok);
}

TEST_F(FakeDriver, closing_after_the_driver_has_gone_is_silent) {
  auto device = open(0);
  ASSERT_TRUE(device->allocate(MemoryKind::cuda, 64).ok());
  for (const char* name : {"cuMemFree", "cuDevicePrimaryCtxRelease", "cuCtxGetCurrent"}) fail(name, kDeinitialized);
  testing::internal::CaptureStderr();
  device.reset();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(FakeDriver, a_context_that_cannot_be_had_is_an_error_in_words) {
  fail("cuDevicePrimaryCtxRetain", kOutOfMemory);
  try {
    open(0);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::no_memory);
    EXPECT_NE(std::string(error.what()).find("CUDA_ERROR_OUT_OF_MEMORY (out of memory)"), std::string::npos)
        << error.what();
  }
}

TEST_F(FakeDriver, managed_memory_beyond_the_gpus_is_refused) {
  const auto device = open(0);
  EXPECT_EQ(device->allocate(MemoryKind::cuda_managed, device->capabilities().memory_bytes + 1).status(),
            Status::no_memory);
}

/// The reason that a fresh process gives, with one variable set: the driver is opened only once in a process.
void expect_reason(const char* variable, const char* value, const char* words) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // starts this program again
  const ScopedVariable set(variable, value);
  EXPECT_EXIT(
      {
        std::string reason;
        const bool empty = port::list_gpus(&reason).empty();
        std::fprintf(stderr, "reason: %s\n", reason.c_str());
        ::_exit(empty ? 0 : 1);
      },
      testing::ExitedWithCode(0), words)
      << variable << "=" << value;
}

TEST_F(FakeDriver, whatever_is_broken_is_told_in_words) {
  expect_reason("FAKE_CUDA_INIT", "100", "reason: the driver sees no GPU: CUDA_ERROR_NO_DEVICE");
  expect_reason("FAKE_CUDA_INIT", "999", "reason: cuInit failed: CUDA_ERROR_OF_THE_FAKE");
  expect_reason("FAKE_CUDA_INIT", "803", "different versions");
  expect_reason("FAKE_CUDA_DEVICES", "0", "shows no GPU");
  expect_reason("FAKE_CUDA_WITHOUT", "cuStreamBatchMemOp", "lacks cuStreamBatchMemOp.*525");
}

TEST_F(FakeDriver, large_pinned_memory_is_a_file_that_the_driver_locks) {
  const auto device = open(0);
  const std::uint64_t locked = calls("cuMemHostRegister"), unlocked = calls("cuMemHostUnregister");
  {
    const Piece small(*device, MemoryKind::pinned, 64), large(*device, MemoryKind::pinned, 65536);
    EXPECT_EQ(calls("cuMemHostRegister"), locked + 1);
    EXPECT_EQ(device->export_allocation(small.at()).status(), Status::wrong_kind);
    EXPECT_EQ(device->export_allocation(large.at(100)).status(), Status::ok);
    const Result<port::PointerInfo> info = device->query(large.at(100));
    ASSERT_TRUE(info.ok());
    EXPECT_EQ(info->kind, MemoryKind::pinned);
    EXPECT_EQ(device->free(large.at(100)), Status::invalid_argument);
    EXPECT_EQ(calls("cuMemHostUnregister"), unlocked);
  }
  EXPECT_EQ(calls("cuMemHostUnregister"), unlocked + 1);
}

TEST_F(FakeDriver, words_of_a_stream_are_one_call_of_the_driver) {
  using port::StreamWord;
  const ScopedVariable words("FAKE_CUDA_WORDS", "1");
  const auto device = open(0);
  ASSERT_TRUE(device->capabilities().stream_words);
  const StreamScope stream(*device);
  const Piece piece(*device, MemoryKind::pinned, 64);
  std::memset(piece.at(), 0, 64);
  auto* const wide = piece.as<std::uint64_t>();
  auto* const narrow = piece.as<std::uint32_t>(16);
  const std::array list{StreamWord::write(wide, std::uint64_t{7} << 33),
                        StreamWord::wait(StreamWord::Act::wait_at_least, wide, std::uint64_t{6} << 33),
                        StreamWord::write(narrow, 0x80000001u),
                        StreamWord::wait(StreamWord::Act::wait_any_bit, narrow, 1u),
                        StreamWord::wait(StreamWord::Act::wait_equal, wide, std::uint64_t{7} << 33)};
  const std::uint64_t before = calls("cuStreamBatchMemOp");
  EXPECT_EQ(device->streams()->at_words(list, stream), Status::ok);
  EXPECT_EQ(calls("cuStreamBatchMemOp"), before + 1);
  EXPECT_EQ(*wide, std::uint64_t{7} << 33);
  EXPECT_EQ(*narrow, 0x80000001u);
  EXPECT_EQ(narrow[1], 0u);
  EXPECT_EQ(device->streams()->wait_value(StreamWord::Act::wait_at_least, wide, std::uint64_t{8} << 33, stream),
            Status::device_failed)
      << "the stand-in does not wait for ever";
  std::uint64_t unknown = 0;
  EXPECT_EQ(device->streams()->write_value(&unknown, 1, stream), Status::invalid_argument);
}

TEST_F(FakeDriver, a_gpu_without_words_for_streams_says_so) {
  const auto device = open(0);
  EXPECT_FALSE(device->capabilities().stream_words);
  const StreamScope stream(*device);
  const Piece piece(*device, MemoryKind::pinned, 64);
  EXPECT_EQ(device->streams()->write_value(piece.as<std::uint64_t>(), 1, stream), Status::not_supported);
}

port::KernelSource fake_kernel() {
  static constexpr std::array kImage = {std::byte{'f'}, std::byte{'a'}, std::byte{'k'}, std::byte{'e'}};
  return {.image = kImage, .symbol = "x", .on_host = nullptr, .argument_bytes = {}};
}

TEST_F(FakeDriver, a_cooperative_grid_is_as_large_as_the_gpu) {
  const auto device = open(0);
  ASSERT_TRUE(device->capabilities().cooperative);
  port::Kernels& kernels = *device->kernels();
  const Result<port::Kernel*> kernel = kernels.load(fake_kernel());
  ASSERT_TRUE(kernel.ok());
  const StreamScope stream(*device);
  EXPECT_EQ(*kernels.blocks_at_once(*kernel, {.block = {256, 1, 1}}), 24u);
  EXPECT_EQ(*kernels.blocks_at_once(*kernel, {.block = {16, 16, 1}, .shared_bytes = 50 << 10}), 6u);
  EXPECT_EQ(*kernels.blocks_at_once(*kernel, {.block = {32, 1, 1}, .shared_bytes = 200 << 10}), 0u);
  EXPECT_EQ(kernels.launch_cooperative(*kernel, {.grid = {6, 4, 1}, .block = {256, 1, 1}}, nullptr, stream),
            Status::ok);
  testing::internal::CaptureStderr();
  EXPECT_EQ(kernels.launch_cooperative(*kernel, {.grid = {5, 5, 1}, .block = {256, 1, 1}}, nullptr, stream),
            Status::limit_reached);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("grid of 25 blocks of 256 x 1 x 1 threads"), std::string::npos) << log;
  EXPECT_NE(log.find("only 24 such blocks"), std::string::npos) << log;
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

TEST_F(FakeDriver, a_gpu_without_cooperative_launches_says_so) {
  const ScopedVariable without("FAKE_CUDA_COOPERATIVE", "0");
  const auto device = open(0);
  EXPECT_FALSE(device->capabilities().cooperative);
  const Result<port::Kernel*> kernel = device->kernels()->load(fake_kernel());
  ASSERT_TRUE(kernel.ok());
  const StreamScope stream(*device);
  EXPECT_EQ(device->kernels()->launch_cooperative(*kernel, {}, nullptr, stream), Status::not_supported);
}

TEST_F(FakeDriver, a_driver_without_questions_about_links_still_serves) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const ScopedVariable without("FAKE_CUDA_WITHOUT", "cuDeviceCanAccessPeer");
  EXPECT_EXIT(::_exit(static_cast<int>(port::list_gpus().size())), testing::ExitedWithCode(2), "");
}

TEST_F(FakeDriver, a_slice_of_a_gpu_works_but_shares_nothing) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const ScopedVariable name("FAKE_CUDA_NAME", "NVIDIA A100-SXM4-40GB MIG 1g.5gb");
  EXPECT_EXIT(
      {
        const auto device = open(0);
        const Result<void*> pointer = device->allocate(MemoryKind::cuda, 64);
        const bool right = port::list_gpus()[0].mig && !device->capabilities().exports && pointer.ok() &&
                           device->export_allocation(*pointer).status() == Status::not_supported;
        ::_exit(right ? 0 : 1);
      },
      testing::ExitedWithCode(0), "slice of a GPU");
}

TEST_F(FakeDriver, one_gpu_assigned_by_the_environment_is_taken_by_any_rank) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const ScopedVariable devices("FAKE_CUDA_DEVICES", "1");
  const ScopedVariable visible("CUDA_VISIBLE_DEVICES", "3");
  EXPECT_EXIT(::_exit(port::open_device({.local_rank = 3, .local_size = 4})->capabilities().ordinal),
              testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace brant::test
