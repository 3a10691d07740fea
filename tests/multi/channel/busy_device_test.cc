// Runs as every rank of a job: messages between devices on which the user does what a courier suffers from most.
#include <dlfcn.h>

#include <cstring>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "bench/courier/load.h"
#include "brant/brant.h"
#include "core/engine.h"
#include "support/job_runtime.h"

namespace brant {
namespace {

using test::job;

class BusyDevice : public testing::Test {
 protected:
  static constexpr std::size_t kBytesMax = 1'000'003;

  void SetUp() override {
    kind_ = job().device_kind();
    if (kind_ == MemoryKind::host) GTEST_SKIP() << "no device: BRANT_GPU=emulated, or a GPU";
    channel_ = Channel::open(job(), Rank{job().rank().value ^ 1}, ChannelId{1});
    source_ = job().allocate(kind_, kBytesMax);
    landing_ = job().allocate(kind_, kBytesMax);
    image_.resize(kBytesMax);
  }

  void fill(std::size_t bytes, unsigned seed) {
    for (std::size_t i = 0; i < bytes; ++i) image_[i] = static_cast<std::byte>((i * 131 + seed * 29 + (i >> 9)) & 0xff);
  }
  /// Both ends send and receive one message; `meanwhile` runs when both are under way.
  void exchange(std::size_t bytes, unsigned seed, const std::function<void()>& meanwhile) {
    const auto self = static_cast<unsigned>(job().rank().value);
    fill(bytes, seed * 2 + self);
    job().copy(source_.part(0, bytes), ConstBuffer(image_.data(), bytes, MemoryKind::host));
    const auto both = [&]() -> Task<void> {
      Operation receive = channel_.recv(landing_.part(0, bytes));
      Operation send = channel_.send(source_.part(0, bytes));
      meanwhile();
      EXPECT_TRUE((co_await receive).ok());
      EXPECT_TRUE((co_await send).ok());
    };
    job().run(both());
    std::vector<std::byte> got(bytes);
    job().copy(Buffer(got.data(), bytes, MemoryKind::host), landing_.part(0, bytes));
    fill(bytes, seed * 2 + (self ^ 1u));
    ASSERT_EQ(std::memcmp(got.data(), image_.data(), bytes), 0) << bytes << " bytes, round " << seed;
  }

  MemoryKind kind_ = MemoryKind::host;
  Channel channel_;
  Memory source_, landing_;
  std::vector<std::byte> image_;
};

constexpr std::size_t kSizes[] = {8, 5000, 65'536, 1'000'003};

TEST_F(BusyDevice, messages_arrive_while_kernels_of_the_user_hold_every_sm) {
  bench::Load load(job().worker().engine().device(), kind_);
  unsigned round = 0;
  for (int turn = 0; turn < 20; ++turn) {
    for (const std::size_t bytes : kSizes) exchange(bytes, round++, [&] { load.hold(2000); });
  }
  load.wait();
}

/// cudaDeviceSynchronize is this call; the driver is in the process already, if this is a GPU.
TEST_F(BusyDevice, messages_arrive_while_the_user_synchronizes_with_the_device_in_a_loop) {
  using Call = int (*)();
  void* driver = kind_ == MemoryKind::cuda ? dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) : nullptr;
  const auto synchronize = driver == nullptr ? nullptr : reinterpret_cast<Call>(dlsym(driver, "cuCtxSynchronize"));
  bench::Load load(job().worker().engine().device(), kind_);
  unsigned round = 0;
  for (int turn = 0; turn < 50; ++turn) {
    for (const std::size_t bytes : kSizes) {
      exchange(bytes, round++, [&] {
        if (synchronize == nullptr) return load.wait();
        ASSERT_EQ(synchronize(), 0);
      });
    }
  }
}

}  // namespace
}  // namespace brant
