// What a process's channels say of themselves: the counts by which a job finds out that nothing is under way.
#include "ops/channel/traffic.h"

#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "ops/channel/table.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

constexpr std::uint64_t kNone = ChannelEnd::kNone;

ChannelEnd end(std::int32_t rank, std::int32_t peer, std::uint64_t next_send, std::uint64_t first_sending,
               std::uint64_t next_receive, std::uint64_t first_receiving, std::uint32_t channel = 1) {
  return {channel, rank < peer ? 0u : 1u, rank, peer, next_send, first_sending, next_receive, first_receiving};
}

TEST(Traffic, a_receive_waits_in_vain_until_its_message_was_posted) {
  EXPECT_TRUE(nothing_comes({end(0, 1, 3, kNone, 0, kNone), end(1, 0, 0, kNone, 5, 3)}));
  EXPECT_FALSE(nothing_comes({end(0, 1, 4, kNone, 0, kNone), end(1, 0, 0, kNone, 5, 3)}));
  EXPECT_TRUE(nothing_comes({end(1, 0, 0, kNone, 1, 0)})) << "the other end was never opened";
  EXPECT_TRUE(nothing_comes({}));
}
TEST(Traffic, a_send_waits_in_vain_until_a_receive_was_posted) {
  EXPECT_TRUE(nothing_comes({end(0, 1, 3, 2, 0, kNone), end(1, 0, 0, kNone, 2, kNone)}));
  EXPECT_FALSE(nothing_comes({end(0, 1, 3, 2, 0, kNone), end(1, 0, 0, kNone, 3, kNone)}))
      << "landed or on its way: the sender will hear of it";
  EXPECT_TRUE(nothing_comes({end(0, 1, 1, 0, 0, kNone), end(1, 0, 1, 0, 0, kNone)})) << "both send";
}
TEST(Traffic, channels_with_one_id_between_other_ranks_are_others) {
  EXPECT_TRUE(nothing_comes({end(0, 1, 1, kNone, 0, kNone), end(2, 3, 0, kNone, 0, kNone),
                             end(1, 0, 0, kNone, 1, kNone), end(3, 2, 0, kNone, 1, 0)}));
  EXPECT_FALSE(nothing_comes({end(0, 1, 1, kNone, 0, kNone), end(2, 3, 1, kNone, 0, kNone),
                              end(1, 0, 0, kNone, 1, kNone), end(3, 2, 0, kNone, 1, 0)}));
  EXPECT_TRUE(nothing_comes({end(0, 1, 1, kNone, 0, kNone, 1), end(1, 0, 0, kNone, 1, 0, 2)}));
}

ChannelTraffic of(test::InProcessJob& job, int rank) {
  return job.rank(rank).worker().engine().service<ChannelTable>().traffic();
}
std::vector<ChannelEnd> ends_of(test::InProcessJob& job, int rank) {
  return job.rank(rank).worker().engine().service<ChannelTable>().ends();
}

struct Outcome {
  int told = 0;
  OpResult result{};
  Completion sink() {
    return {[](void* self, const OpResult& told_result) noexcept {
              auto& outcome = *static_cast<Outcome*>(self);
              ++outcome.told;
              outcome.result = told_result;
            },
            this};
  }
};

TEST(Traffic, counts_sends_and_receives_until_they_have_ended) {
  for (const bool links : {false, true}) {
    test::JobOptions options;
    options.links = links;
    if (links) options.runtime.path = Path::shm;
    test::InProcessJob job(options);
    Channel left = Channel::open(job.rank(0), Rank{1}, ChannelId{4});
    Channel right = Channel::open(job.rank(1), Rank{0}, ChannelId{4});
    const std::vector<std::byte> out(100'000);
    std::vector<std::byte> in(out.size());
    Op send, receive;
    Outcome sent, received;
    send.source_free = sent.sink();
    ASSERT_EQ(left.post_send(ConstBuffer(out.data(), out.size()), send), Status::in_progress);
    job.run(10);
    EXPECT_EQ(of(job, 0).sent, 1u);
    EXPECT_EQ(of(job, 0).sending, 1u);
    EXPECT_EQ(of(job, 1).received, 0u);
    std::vector<ChannelEnd> ends = ends_of(job, 0);
    ASSERT_EQ(ends.size(), 1u);
    EXPECT_EQ(ends[0].first_sending, 0u);
    EXPECT_EQ(ends[0].next_send, 1u);
    EXPECT_TRUE(ends_of(job, 1).empty()) << "nothing was posted there";
    EXPECT_TRUE(nothing_comes(ends));

    receive.delivered = received.sink();
    ASSERT_EQ(right.post_recv(Buffer(in.data(), in.size()), receive), Status::in_progress);
    ends = ends_of(job, 0);
    for (const ChannelEnd& other : ends_of(job, 1)) ends.push_back(other);
    EXPECT_FALSE(nothing_comes(ends));
    const std::uint64_t moves = of(job, 0).moves + of(job, 1).moves;
    EXPECT_TRUE(job.run_until([&] { return sent.told == 1 && received.told == 1; }));
    EXPECT_EQ(of(job, 0).moves + of(job, 1).moves, moves + 2);
    EXPECT_EQ(of(job, 0).sending, 0u);
    EXPECT_EQ(of(job, 1).received, 1u);

    // A receive that waits is seen, and one that is taken back until that is settled.
    Outcome taken_back;
    receive.delivered = taken_back.sink();
    ASSERT_EQ(right.post_recv(Buffer(in.data(), in.size()), receive), Status::in_progress);
    job.run(10);
    ASSERT_EQ(ends_of(job, 1).size(), 1u);
    EXPECT_EQ(ends_of(job, 1)[0].first_receiving, 1u);
    receive.cancel();
    if (links) {
      EXPECT_EQ(of(job, 1).withdrawing, 1u) << "the sender has to agree";
    }
    EXPECT_TRUE(job.run_until([&] { return taken_back.told == 1; }));
    EXPECT_EQ(taken_back.result.status, Status::canceled);
    EXPECT_EQ(of(job, 1).withdrawing, 0u);
    EXPECT_EQ(ends_of(job, 1)[0].first_receiving, kNone);
    EXPECT_EQ(ends_of(job, 1)[0].next_receive, 1u) << "the next receive gets the turn";
  }
}

}  // namespace
}  // namespace brant
