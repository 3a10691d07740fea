// What every device promises of kernels whose blocks wait for one another.
#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "conformance/memory/memory_fixture.h"

extern "C" const unsigned char memory_test_kernels_fatbin[];
extern "C" const std::size_t memory_test_kernels_fatbin_bytes;

namespace brant::test {
namespace {

using port::HostLaunch;
using port::LaunchShape;

constexpr unsigned long long kMet = 1;
constexpr unsigned long long kGaveUp = 2;
constexpr unsigned long long kLimitNs = 10'000'000'000;

void meet_on_host(const HostLaunch& launch) noexcept {
  auto* arrived = launch.pointer<unsigned long long>(0);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::nanoseconds(launch.value<unsigned long long>(1));
  auto* outcomes = launch.pointer<unsigned long long>(2);
  for (std::uint64_t block = launch.first_block; block < launch.first_block + launch.blocks; ++block) {
    std::atomic_ref(*arrived).fetch_add(1);
    bool late = false;
    while (std::atomic_ref(*arrived).load() < launch.shape.blocks() && !late) {
      std::this_thread::yield();
      late = std::chrono::steady_clock::now() > limit;
    }
    outcomes[block] = late ? kGaveUp : kMet;
  }
}

constexpr std::array kMeetArguments = {sizeof(void*), sizeof(unsigned long long), sizeof(void*)};

class CooperativeKernels : public StreamConformance {
 protected:
  void SetUp() override {
    StreamConformance::SetUp();
    if (IsSkipped()) return;
    if (!device().capabilities().cooperative) GTEST_SKIP() << GetParam() << ": it launches nothing cooperatively";
    const auto image = std::as_bytes(std::span(memory_test_kernels_fatbin, memory_test_kernels_fatbin_bytes));
    if (GetParam() == "cuda" && image.empty()) GTEST_SKIP() << "built without nvcc: there is no image for a GPU";
    const Result<port::Kernel*> loaded = kernels().load({image, "brant_test_meet", &meet_on_host, kMeetArguments});
    if (GetParam() == "cuda" && loaded.status() == Status::not_supported) {
      GTEST_SKIP() << "the image holds no code for " << device().capabilities().name;
    }
    ASSERT_TRUE(loaded.ok()) << status_name(loaded.status());
    meet_ = *loaded;
  }
  port::Kernels& kernels() { return *device().kernels(); }
  unsigned at_once(const LaunchShape& shape) {
    const Result<unsigned> blocks = kernels().blocks_at_once(meet_, shape);
    EXPECT_TRUE(blocks.ok()) << status_name(blocks.status());
    return blocks.ok() ? *blocks : 0;
  }
  /// `words`: how many have arrived, and from the second on what became of each block.
  Status launch(const LaunchShape& shape, unsigned long long* words, port::Stream* stream,
                unsigned long long limit_ns = kLimitNs) {
    unsigned long long* outcomes = words + 1;
    std::array<void*, 3> arguments = {static_cast<void*>(&words), &limit_ns, static_cast<void*>(&outcomes)};
    return kernels().launch_cooperative(meet_, shape, arguments.data(), stream);
  }

  port::Kernel* meet_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Device, CooperativeKernels, testing::Values("emulated", "cuda"), subject_name);

TEST_P(CooperativeKernels, all_blocks_that_fit_meet_each_other) {
  const StreamScope stream(device());
  for (const unsigned threads : {1u, 64u, 1024u}) {
    LaunchShape shape{.block = {threads, 1, 1}};
    const unsigned fit = at_once(shape);
    ASSERT_GE(fit, 1u);
    for (const unsigned blocks : {1u, (fit + 1) / 2, fit}) {
      SCOPED_TRACE(std::to_string(blocks) + " blocks of " + std::to_string(threads) + " threads");
      shape.grid[0] = blocks;
      const Piece words(device(), device_kind(), (blocks + 1) * sizeof(unsigned long long));
      write(words.at(), Bytes(words.bytes()));
      ASSERT_EQ(launch(shape, words.as<unsigned long long>(), stream), Status::ok);
      ASSERT_EQ(streams().synchronize(stream), Status::ok);
      std::vector<unsigned long long> got(blocks + 1);
      std::memcpy(got.data(), read(words.at(), words.bytes()).data(), words.bytes());
      EXPECT_EQ(got[0], blocks);
      for (unsigned i = 1; i <= blocks; ++i) ASSERT_EQ(got[i], kMet) << "block " << i - 1;
    }
  }
}

TEST_P(CooperativeKernels, they_take_their_turn_in_the_stream) {
  const StreamScope stream(device());
  const LaunchShape shape{.grid = {at_once({}), 1, 1}};
  const std::size_t bytes = (shape.grid[0] + 1) * sizeof(unsigned long long);
  const Piece words(device(), device_kind(), bytes);
  const Piece seen(device(), MemoryKind::pinned, bytes);
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(streams().fill(words.at(), std::byte{0}, bytes, stream), Status::ok);
    ASSERT_EQ(launch(shape, words.as<unsigned long long>(), stream), Status::ok);
    ASSERT_EQ(streams().copy(seen.at(), words.at(), bytes, stream), Status::ok);
    ASSERT_EQ(streams().synchronize(stream), Status::ok);
    ASSERT_EQ(seen.as<unsigned long long>()[0], shape.grid[0]);
    ASSERT_EQ(seen.as<unsigned long long>()[shape.grid[0]], kMet);
  }
}

TEST_P(CooperativeKernels, a_grid_that_does_not_fit_is_refused_and_what_fits_is_told) {
  const StreamScope stream(device());
  LaunchShape shape{.block = {1024, 1, 1}};
  const unsigned fit = at_once(shape);
  const Piece words(device(), MemoryKind::pinned, (fit + 2) * sizeof(unsigned long long));
  std::memset(words.at(), 0, words.bytes());
  shape.grid[0] = fit + 1;
  testing::internal::CaptureStderr();
  EXPECT_EQ(launch(shape, words.as<unsigned long long>(), stream, 1'000'000), Status::limit_reached);
  const std::string log = testing::internal::GetCapturedStderr();
  for (const std::string& said : {"grid of " + std::to_string(fit + 1), "only " + std::to_string(fit) + " such blocks"})
    EXPECT_NE(log.find(said), std::string::npos) << said << " in: " << log;
  EXPECT_EQ(streams().synchronize(stream), Status::ok) << "the stream is as it was";
  EXPECT_EQ(words.as<unsigned long long>()[0], 0u) << "nothing ran";
}

TEST_P(CooperativeKernels, larger_blocks_are_not_more) {
  const unsigned small = at_once({.block = {32, 1, 1}});
  EXPECT_LE(at_once({.block = {1024, 1, 1}}), small);
  EXPECT_LE(at_once({.block = {32, 1, 1}, .shared_bytes = 40 << 10}), small);
  EXPECT_EQ(at_once({.grid = {1000, 3, 1}, .block = {32, 1, 1}}), small) << "whatever the grid";
}

TEST_P(CooperativeKernels, refuses_what_cannot_be) {
  const StreamScope stream(device());
  const Piece words(device(), MemoryKind::pinned, 64);
  EXPECT_EQ(launch({}, words.as<unsigned long long>(), nullptr), Status::invalid_argument);
  EXPECT_EQ(launch({.grid = {0, 1, 1}}, words.as<unsigned long long>(), stream), Status::invalid_argument);
  EXPECT_EQ(launch({.block = {1025, 1, 1}}, words.as<unsigned long long>(), stream), Status::invalid_argument);
  for (const LaunchShape& shape : {LaunchShape{.block = {0, 1, 1}}, LaunchShape{.block = {64, 32, 1}}})
    EXPECT_EQ(kernels().blocks_at_once(meet_, shape).status(), Status::invalid_argument);
  EXPECT_EQ(kernels().blocks_at_once(nullptr, {}).status(), Status::invalid_argument);
  void* none = nullptr;
  EXPECT_EQ(kernels().launch_cooperative(nullptr, {}, &none, stream), Status::invalid_argument);
  EXPECT_EQ(streams().synchronize(stream), Status::ok);
}

}  // namespace
}  // namespace brant::test
