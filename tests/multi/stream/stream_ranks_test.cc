// Runs as every rank of a job (`brant run -n 2`): transfers that streams trigger, between real processes. The same
// program serves the emulated device and CUDA: BRANT_GPU decides. Without devices that map each other's memory it says
// so.
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/device.h"
#include "multi/channel/block.h"
#include "support/job_runtime.h"

namespace brant {
namespace {

using test::Block;
using test::job;

StreamChannel pair_channel(std::uint32_t number) {
  return StreamChannel::open(job(), Rank{job().rank().value ^ 1}, ChannelId{number});
}

/// False: there are no devices, and it says so.
bool prepare(StreamChannel& channel) {
  Operation prepared = channel.prepare();
  EXPECT_EQ(job().worker().wait_until([&]() noexcept { return prepared.done(); }), Status::ok);
  if (job().device_kind() == MemoryKind::host) {
    EXPECT_EQ(prepared.result().status, Status::not_supported);
    return false;
  }
  EXPECT_EQ(prepared.result().status, Status::ok);
  return prepared.result().ok();
}

/// Both exchange on one stream each.
void exchange(StreamChannel& channel, Block& source, Block& landing, std::size_t bytes, unsigned seed) {
  const auto self = static_cast<unsigned>(job().rank().value);
  const Stream stream = job().device().create_stream();
  source.fill(self + 2 * seed);
  EXPECT_EQ(channel.recv_start(Buffer(landing.view().data, bytes, landing.view().kind), {.stream = stream}),
            Status::ok);
  EXPECT_EQ(channel.send(ConstBuffer(source.view().data, bytes, source.view().kind), {.stream = stream}), Status::ok);
  Operation finished(Moment::delivered,
                     [&](Op& op) noexcept { return channel.recv_finish({.stream = stream, .op = &op}); });
  EXPECT_EQ(job().worker().wait_until([&]() noexcept { return finished.done(); }), Status::ok);
  EXPECT_TRUE(finished.result().ok());
  EXPECT_TRUE(landing.holds((self ^ 1u) + 2 * seed, bytes)) << bytes;
}

TEST(StreamRanks, two_ends_exchange_messages_by_themselves) {
  StreamChannel channel = pair_channel(1);
  if (!prepare(channel)) return;
  Block source(job().device_kind(), 5'000'000), landing(job().device_kind(), 5'000'000);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{8192}, std::size_t{100'003}, std::size_t{5'000'000}}) {
    exchange(channel, source, landing, bytes, static_cast<unsigned>(bytes));
  }
}

TEST(StreamRanks, an_id_is_opened_again_and_again) {
  for (unsigned round = 0; round < 5; ++round) {
    StreamChannel channel = pair_channel(2);
    if (!prepare(channel)) return;
    Block source(job().device_kind(), 100'000), landing(job().device_kind(), 100'000);
    exchange(channel, source, landing, 100'000, round);
  }
}

}  // namespace
}  // namespace brant
