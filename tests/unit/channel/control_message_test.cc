// What the ends of channels tell each other apart from data, when it comes late or finds no room.

#include <memory>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "core/engine.h"
#include "port/wire/faulty/faulty.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using test::InProcessJob;
using test::JobOptions;

constexpr ChannelId kId{3};

JobOptions over_network() {
  JobOptions options;
  options.links = false;
  return options;
}

void send_and_receive(InProcessJob& job, Channel& from, Channel& to) {
  const int value = 42;
  int got = 0;
  Operation received = to.recv(Buffer(&got, sizeof(got))), sent = from.send(ConstBuffer(&value, sizeof(value)));
  EXPECT_TRUE(job.outcome(received).ok() && job.outcome(sent).ok());
}

TEST(ControlMessage, of_a_peer_that_is_gone_is_no_error) {
  InProcessJob job(over_network());
  Channel left = Channel::open(job.rank(0), Rank{1}, kId), right = Channel::open(job.rank(1), Rank{0}, kId);
  send_and_receive(job, left, right);
  right.close();
  job.run(20);
  Engine& engine = job.rank(1).worker().engine();
  engine.peers().suspect(engine.peers().connect(Rank{0}));
  for (int round = 0; round < 20; ++round) job.rank(1).worker().progress();
  ASSERT_TRUE(engine.peers().find(0)->lost);
  testing::internal::CaptureStderr();
  left.close();
  job.run(50);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

/// The network refuses the sends of rank 1 now and then.
JobOptions without_room(std::uint64_t seed) {
  JobOptions options = over_network();
  options.network.seed = seed;
  options.wrap = [seed](int rank, std::unique_ptr<port::Wire> wire) -> std::unique_ptr<port::Wire> {
    if (rank == 0) return wire;
    port::FaultPolicy policy;
    policy.seed = seed;
    policy.rules = {{.point = port::FaultPoint::am_send,
                     .effect = port::FaultEffect::refuse,
                     .rate = 0.5,
                     .status = Status::limit_reached}};
    return std::make_unique<port::FaultyWire>(std::move(wire), policy);
  };
  return options;
}

TEST(ControlMessage, that_found_no_room_is_not_overtaken) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    InProcessJob job(without_room(seed));
    Channel left = Channel::open(job.rank(0), Rank{1}, kId), right = Channel::open(job.rank(1), Rank{0}, kId);
    const char message[64] = {};
    char small[4], large[64];
    Operation first = left.send(ConstBuffer(message, 64), Moment::delivered);
    Operation second = left.send(ConstBuffer(message, 64), Moment::delivered);
    Operation too_short = right.recv(Buffer(small, sizeof(small)));
    Operation whole = right.recv(Buffer(large, sizeof(large)));
    EXPECT_EQ(job.outcome(too_short).status, Status::truncated);
    EXPECT_TRUE(job.outcome(whole).ok());
    EXPECT_EQ(job.outcome(first).status, Status::truncated) << seed;
    EXPECT_TRUE(job.outcome(second).ok()) << seed;
  }
}

}  // namespace
}  // namespace brant
