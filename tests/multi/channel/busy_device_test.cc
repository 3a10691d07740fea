// Runs as every rank of a job: messages between devices on which the user does what a courier suffers from most.
#include <functional>
#include <optional>

#include <gtest/gtest.h>

#include "bench/courier/load.h"
#include "brant/brant.h"
#include "core/engine.h"
#include "multi/channel/block.h"
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
    source_.emplace(kind_, kBytesMax);
    landing_.emplace(kind_, kBytesMax);
  }

  /// Both ends send and receive one message; `meanwhile` runs when both are under way.
  void exchange(std::size_t bytes, unsigned seed, const std::function<void()>& meanwhile) {
    const auto self = static_cast<unsigned>(job().rank().value);
    source_->fill(seed * 2 + self);
    const auto both = [&]() -> Task<void> {
      Operation receive = channel_.recv({landing_->view().data, bytes, kind_});
      Operation send = channel_.send({source_->view().data, bytes, kind_});
      meanwhile();
      EXPECT_TRUE((co_await receive).ok());
      EXPECT_TRUE((co_await send).ok());
    };
    job().run(both());
    ASSERT_TRUE(landing_->holds(seed * 2 + (self ^ 1u), bytes)) << bytes << " bytes, round " << seed;
  }

  MemoryKind kind_ = MemoryKind::host;
  Channel channel_;
  std::optional<test::Block> source_, landing_;
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

TEST_F(BusyDevice, messages_arrive_while_the_user_synchronizes_with_the_device_in_a_loop) {
  const bench::DeviceCall synchronize = kind_ == MemoryKind::cuda ? bench::device_synchronize() : nullptr;
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
