// Sends that nobody receives: they are refused at a bound, and what was accepted goes when receives come.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "brant/core/sinks.h"
#include "brant/ops/channel.h"
#include "ops/channel/table.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using test::InProcessJob;

TEST(Flood, of_a_million_unread_sends_is_refused_at_the_bound_and_drains_in_order) {
  constexpr std::size_t kSends = 1'000'000;
  InProcessJob job;
  Channel left = Channel::open(job.rank(0), Rank{1}, ChannelId{7});
  Channel right = Channel::open(job.rank(1), Rank{0}, ChannelId{7});
  constexpr std::size_t kAheadMax = 1024;  // those ended at once, since the receiver's side holds them
  std::vector<Op> ops(ChannelPools::kTransfersMax + kAheadMax);
  std::vector<int> values(ops.size());
  Counter sent;
  std::size_t accepted = 0, refused = 0;
  for (std::size_t i = 0; i < kSends; ++i) {
    Op& op = ops[std::min(accepted, ops.size() - 1)];
    int& value = values[std::min(accepted, ops.size() - 1)];
    value = static_cast<int>(accepted);
    op.source_free = sent.sink();
    const Status posted = left.post_send(ConstBuffer(&value, sizeof(value)), op);
    if (posted == Status::limit_reached) {
      ++refused;
      continue;
    }
    ASSERT_TRUE(posted == Status::ok || posted == Status::in_progress) << status_name(posted);
    sent.track(posted, op);
    ASSERT_LT(++accepted, ops.size());
  }
  EXPECT_GE(accepted, ChannelPools::kTransfersMax);
  EXPECT_EQ(accepted + refused, kSends);
  for (std::size_t i = 0; i < accepted; ++i) {
    int got = -1;
    Operation receive = right.recv(Buffer(&got, sizeof(got)));
    ASSERT_TRUE(job.outcome(receive).ok());
    ASSERT_EQ(got, static_cast<int>(i));
  }
  EXPECT_TRUE(job.run_until([&] { return sent.pending() == 0; }));
  EXPECT_TRUE(sent.result().ok());
}

}  // namespace
}  // namespace brant
