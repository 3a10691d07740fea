// A peer that control messages find no memory for is given up: what waits for it ends.
#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "conformance/moves/allocation_sweep.h"

namespace brant {
namespace {

using test::Fails;
using test::JobOptions;
using test::ScarceJob;
using test::ScarceMemory;

/// Posts control records of a channel until there is no room for one in the ring or the pools, and no memory.
bool is_given_up_for_want_of_memory(Engine& engine, Peer& peer) {
  constexpr int kMost = 100'000;
  const ChannelControl control{ChannelControl::Kind::acknowledge, 0, 7, peer.rank_there, 0, 0, 0};
  auto& table = engine.service<ChannelTable>();
  ChannelPeer& to = table.with(peer);
  ScarceMemory scarce(1, Fails::from_then_on);
  for (int sent = 0; sent < kMost && !engine.peers().any_suspected(); ++sent) table.controls().send(to, control);
  return engine.peers().any_suspected() && scarce.failed();
}

TEST(ControlMemory, that_is_short_ends_what_waits_for_the_peer) {
  for (const bool links : {true, false}) {
    SCOPED_TRACE(links ? "over the link" : "over the network");
    JobOptions options;
    options.links = links;
    ScarceJob job(options);
    Channel left = Channel::open(job->rank(0), Rank{1}, ChannelId{7});
    Channel right = Channel::open(job->rank(1), Rank{0}, ChannelId{7});
    job->run(20);
    int value = 0;
    Operation waits = left.recv(Buffer(&value, sizeof(value)));
    Engine& engine = job.engine(0);
    EXPECT_TRUE(is_given_up_for_want_of_memory(engine, engine.peers()[1]));
    EXPECT_TRUE(job.run_until([&] { return waits.done(); })) << "never ends";
    EXPECT_EQ(waits.result().status, Status::peer_lost);
    EXPECT_TRUE(engine.peers()[1].lost);
    Op later;
    EXPECT_EQ(left.post_send(ConstBuffer(&value, sizeof(value)), later), Status::peer_lost);
    job.part_wholly();
  }
}

}  // namespace
}  // namespace brant
