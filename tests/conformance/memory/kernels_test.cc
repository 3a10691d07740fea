// What every device with kernels promises: arguments, order, loading, and work that waits for the CPU.
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "conformance/memory/memory_fixture.h"

extern "C" const unsigned char memory_test_kernels_fatbin[];
extern "C" const std::size_t memory_test_kernels_fatbin_bytes;

namespace brant::test {
namespace {

using namespace std::chrono_literals;
using port::HostLaunch;

void axpy_on_host(const HostLaunch& launch) noexcept {
  const auto factor = launch.value<float>(0);
  const auto* x = launch.pointer<const float>(1);
  auto* y = launch.pointer<float>(2);
  const auto count = launch.value<unsigned>(3);
  if (x == nullptr || y == nullptr) return;
  for (unsigned i = 0; i < count; ++i) y[i] += factor * x[i];
}

void mixed_on_host(const HostLaunch& launch) noexcept {
  auto* out = launch.pointer<unsigned long long>(3);
  out[0] = static_cast<unsigned long long>(launch.value<char>(0));
  out[1] = static_cast<unsigned long long>(launch.value<double>(1));
  out[2] = static_cast<unsigned long long>(launch.value<short>(2));
}

void wait_on_host(const HostLaunch& launch) noexcept {
  auto* flag = launch.pointer<unsigned long long>(0);
  const auto value = launch.value<unsigned long long>(1);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::nanoseconds(launch.value<unsigned long long>(2));
  auto* outcome = launch.pointer<unsigned long long>(3);
  while (std::atomic_ref(*flag).load(std::memory_order_acquire) != value) {
    if (std::chrono::steady_clock::now() > limit) {
      *outcome = 2;
      return;
    }
    std::this_thread::yield();
  }
  *outcome = 1;
}

constexpr std::array kAxpyArguments = {sizeof(float), sizeof(void*), sizeof(void*), sizeof(unsigned)};
constexpr std::array kMixedArguments = {sizeof(char), sizeof(double), sizeof(short), sizeof(void*)};
constexpr std::array kWaitArguments = {sizeof(void*), sizeof(unsigned long long), sizeof(unsigned long long),
                                       sizeof(void*)};

std::span<const std::byte> image() {
  return std::as_bytes(std::span(memory_test_kernels_fatbin, memory_test_kernels_fatbin_bytes));
}

port::KernelSource axpy() { return {image(), "brant_test_axpy", &axpy_on_host, kAxpyArguments}; }
port::KernelSource mixed() { return {image(), "brant_test_mixed", &mixed_on_host, kMixedArguments}; }
port::KernelSource waiting() { return {image(), "brant_test_wait", &wait_on_host, kWaitArguments}; }

class KernelConformance : public StreamConformance {
 protected:
  void SetUp() override {
    StreamConformance::SetUp();
    if (IsSkipped()) return;
    if (!device().capabilities().kernels) GTEST_SKIP() << GetParam() << ": this device runs no kernels";
    if (GetParam() == "cuda" && image().empty()) GTEST_SKIP() << "built without nvcc: there is no image for a GPU";
    const Result<port::Kernel*> probe = kernels().load(axpy());
    if (GetParam() == "cuda" && probe.status() == Status::not_supported) {
      GTEST_SKIP() << "the image holds no code for " << device().capabilities().name;
    }
  }
  port::Kernels& kernels() { return *device().kernels(); }
  port::Kernel* load(const port::KernelSource& source) {
    const Result<port::Kernel*> kernel = kernels().load(source);
    EXPECT_TRUE(kernel.ok()) << source.symbol << ": " << status_name(kernel.status());
    return kernel.ok() ? *kernel : nullptr;
  }
  Status launch_axpy(port::Kernel* kernel, float factor, const void* x, void* y, unsigned count, port::Stream* stream) {
    std::array<void*, 4> arguments = {&factor, &x, &y, &count};
    return kernels().launch(kernel, {.grid = {4, 1, 1}, .block = {128, 1, 1}}, arguments.data(), stream);
  }
  std::vector<float> floats(const Piece& piece) {
    const Bytes bytes = read(piece.at(), piece.bytes());
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

INSTANTIATE_TEST_SUITE_P(Device, KernelConformance, testing::Values("emulated", "cuda"), subject_name);

TEST_P(KernelConformance, a_kernel_works_on_device_memory) {
  constexpr unsigned kCount = 10001;
  const StreamScope stream(device());
  port::Kernel* kernel = load(axpy());
  const Piece x(device(), device_kind(), kCount * sizeof(float));
  const Piece y(device(), device_kind(), kCount * sizeof(float));
  std::vector<float> ramp(kCount);
  for (unsigned i = 0; i < kCount; ++i) ramp[i] = static_cast<float>(i);
  write(x.at(), std::as_bytes(std::span(ramp)));
  const std::vector<float> ones(kCount, 1.0f);
  write(y.at(), std::as_bytes(std::span(ones)));
  ASSERT_EQ(launch_axpy(kernel, 2.0f, x.at(), y.at(), kCount, stream), Status::ok);
  ASSERT_EQ(streams().synchronize(stream), Status::ok);
  const std::vector<float> got = floats(y);
  for (unsigned i = 0; i < kCount; ++i) ASSERT_EQ(got[i], 1.0f + 2.0f * static_cast<float>(i)) << i;
}

TEST_P(KernelConformance, kernels_and_copies_of_a_stream_keep_their_order) {
  constexpr unsigned kCount = 5000;
  const StreamScope stream(device());
  port::Kernel* kernel = load(axpy());
  const Piece x(device(), device_kind(), kCount * sizeof(float));
  const Piece y(device(), device_kind(), kCount * sizeof(float));
  const Piece back(device(), MemoryKind::pinned, kCount * sizeof(float));
  const std::vector<float> ones(kCount, 1.0f);
  write(x.at(), std::as_bytes(std::span(ones)));
  for (int round = 0; round < 50; ++round) {
    ASSERT_EQ(streams().fill(y.at(), std::byte{0}, y.bytes(), stream), Status::ok);
    for (int step = 0; step < 5; ++step)
      ASSERT_EQ(launch_axpy(kernel, 1.0f, x.at(), y.at(), kCount, stream), Status::ok);
    ASSERT_EQ(streams().copy(back.at(), y.at(), y.bytes(), stream), Status::ok);
    ASSERT_EQ(streams().synchronize(stream), Status::ok);
    ASSERT_EQ(back.as<float>()[0], 5.0f);
    ASSERT_EQ(back.as<float>()[kCount - 1], 5.0f);
  }
}

TEST_P(KernelConformance, a_kernel_reaches_pinned_memory_and_the_middle_of_an_allocation) {
  const StreamScope stream(device());
  port::Kernel* kernel = load(axpy());
  const Piece x(device(), MemoryKind::pinned, 100 * sizeof(float));
  const Piece y(device(), device_kind(), 100 * sizeof(float));
  for (int i = 0; i < 100; ++i) x.as<float>()[i] = 3.0f;
  write(y.at(), Bytes(y.bytes(), std::byte{0}));
  ASSERT_EQ(launch_axpy(kernel, 1.0f, x.at(10 * sizeof(float)), y.at(50 * sizeof(float)), 7, stream), Status::ok);
  ASSERT_EQ(streams().synchronize(stream), Status::ok);
  const std::vector<float> got = floats(y);
  for (unsigned i = 0; i < 100; ++i) EXPECT_EQ(got[i], i >= 50 && i < 57 ? 3.0f : 0.0f) << i;
}

TEST_P(KernelConformance, argument_values_are_those_of_the_launch) {
  const StreamScope stream(device());
  port::Kernel* kernel = load(mixed());
  const Piece out(device(), MemoryKind::pinned, 64 * 3 * sizeof(unsigned long long));
  for (int round = 0; round < 64; ++round) {
    auto small = static_cast<char>(round);
    double big = round * 1e9;
    auto odd = static_cast<short>(round * 3);
    auto* place = out.as<unsigned long long>() + 3 * round;
    std::array<void*, 4> arguments = {&small, &big, &odd, &place};
    ASSERT_EQ(kernels().launch(kernel, {}, arguments.data(), stream), Status::ok);
    small = 99;  // after the launch they are ours again
    big = -1;
    odd = -1;
    place = nullptr;
  }
  ASSERT_EQ(streams().synchronize(stream), Status::ok);
  for (unsigned long long round = 0; round < 64; ++round) {
    const auto* place = out.as<unsigned long long>() + 3 * round;
    EXPECT_EQ(place[0], round);
    EXPECT_EQ(place[1], round * 1'000'000'000);
    EXPECT_EQ(place[2], round * 3);
  }
}

TEST_P(KernelConformance, a_running_kernel_sees_what_the_cpu_writes) {
  const StreamScope stream(device());
  const StreamScope other(device());
  const EventScope event(device());
  port::Kernel* kernel = load(waiting());
  const Piece pinned(device(), MemoryKind::pinned, 128);
  const Piece piece(device(), device_kind(), 64);
  // Made and used once before the kernel runs: allocating, and the driver's first fill, may wait for it.
  const StreamScope third(device());
  const Piece aside(device(), MemoryKind::pinned, 64);
  const std::array<port::Stream*, 3> all = {stream, other, third};
  for (port::Stream* warm : all) {
    ASSERT_EQ(streams().fill(aside.at(), std::byte{0}, 64, warm), Status::ok);
    ASSERT_EQ(streams().fill(piece.at(), std::byte{0}, 64, warm), Status::ok);
    ASSERT_EQ(streams().synchronize(warm), Status::ok);
  }
  auto* flag = pinned.as<unsigned long long>();
  auto* outcome = pinned.as<unsigned long long>(64);
  *flag = 0;
  *outcome = 0;
  unsigned long long value = 7;
  unsigned long long limit_ns = 10'000'000'000;
  std::array<void*, 4> arguments = {&flag, &value, &limit_ns, &outcome};
  ASSERT_EQ(kernels().launch(kernel, {}, arguments.data(), stream), Status::ok);
  ASSERT_EQ(streams().record(event, stream), Status::ok);
  // Work behind the kernel, and work of another stream behind the event, wait with it.
  ASSERT_EQ(streams().fill(piece.at(), std::byte{1}, 32, stream), Status::ok);
  ASSERT_EQ(streams().wait_event(other, event), Status::ok);
  ASSERT_EQ(streams().fill(piece.at(32), std::byte{2}, 32, other), Status::ok);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(streams().poll(event), Status::in_progress);
    EXPECT_EQ(streams().poll(stream), Status::in_progress);
    EXPECT_EQ(streams().poll(other), Status::in_progress);
    std::this_thread::sleep_for(1ms);
  }
  // A third stream is not held up: streams are independent.
  ASSERT_EQ(streams().fill(aside.at(), std::byte{3}, 64, third), Status::ok);
  ASSERT_EQ(streams().synchronize(third), Status::ok);
  EXPECT_EQ(*aside.at(), std::byte{3});

  std::atomic_ref(*flag).store(value, std::memory_order_release);
  ASSERT_EQ(streams().synchronize(stream), Status::ok);
  ASSERT_EQ(streams().synchronize(other), Status::ok);
  EXPECT_EQ(streams().poll(event), Status::ok);
  EXPECT_EQ(*outcome, 1u);
}

TEST_P(KernelConformance, an_event_recorded_again_means_the_later_place) {
  const StreamScope idle(device());
  const StreamScope busy(device());
  const EventScope event(device());
  port::Kernel* kernel = load(waiting());
  const Piece pinned(device(), MemoryKind::pinned, 128);
  auto* flag = pinned.as<unsigned long long>();
  auto* outcome = pinned.as<unsigned long long>(64);
  *flag = 0;
  unsigned long long value = 1;
  unsigned long long limit_ns = 10'000'000'000;
  std::array<void*, 4> arguments = {&flag, &value, &limit_ns, &outcome};
  ASSERT_EQ(streams().record(event, idle), Status::ok);
  ASSERT_EQ(streams().synchronize(idle), Status::ok);
  EXPECT_EQ(streams().poll(event), Status::ok);
  ASSERT_EQ(kernels().launch(kernel, {}, arguments.data(), busy), Status::ok);
  ASSERT_EQ(streams().record(event, busy), Status::ok);
  EXPECT_EQ(streams().poll(event), Status::in_progress);
  std::atomic_ref(*flag).store(value, std::memory_order_release);
  ASSERT_EQ(streams().synchronize(busy), Status::ok);
  EXPECT_EQ(streams().poll(event), Status::ok);
}

TEST_P(KernelConformance, refuses_launches_that_cannot_be) {
  const StreamScope stream(device());
  port::Kernel* kernel = load(axpy());
  float factor = 1;
  void* none = nullptr;
  unsigned count = 0;
  std::array<void*, 4> arguments = {&factor, &none, &none, &count};
  EXPECT_EQ(kernels().launch(nullptr, {}, arguments.data(), stream), Status::invalid_argument);
  EXPECT_EQ(kernels().launch(kernel, {}, arguments.data(), nullptr), Status::invalid_argument);
  EXPECT_EQ(kernels().launch(kernel, {.grid = {0, 1, 1}}, arguments.data(), stream), Status::invalid_argument);
  EXPECT_EQ(kernels().launch(kernel, {.block = {1025, 1, 1}}, arguments.data(), stream), Status::invalid_argument);
  EXPECT_EQ(kernels().launch(kernel, {.block = {64, 64, 1}}, arguments.data(), stream), Status::invalid_argument);
  EXPECT_EQ(kernels().launch(kernel, {}, arguments.data(), stream), Status::ok);
  EXPECT_EQ(streams().synchronize(stream), Status::ok);
}

TEST_P(KernelConformance, refuses_to_load_what_is_not_there) {
  port::KernelSource none = axpy();
  none.image = {};
  none.on_host = nullptr;
  EXPECT_EQ(kernels().load(none).status(), Status::not_supported);
  if (GetParam() != "cuda") return;
  port::KernelSource misspelt = axpy();
  misspelt.symbol = "brant_test_no_such_kernel";
  EXPECT_EQ(kernels().load(misspelt).status(), Status::not_found);
  port::KernelSource wrong = axpy();
  constexpr std::array kWrong = {sizeof(float), sizeof(void*), sizeof(void*), sizeof(double)};
  wrong.argument_bytes = kWrong;
  const Status status = kernels().load(wrong).status();  // noticed from CUDA 12.4 on
  EXPECT_TRUE(status == Status::invalid_argument || status == Status::ok);
}

TEST_P(KernelConformance, loading_again_is_harmless) {
  for (int i = 0; i < 100; ++i) EXPECT_NE(load(axpy()), nullptr);
}

}  // namespace
}  // namespace brant::test
