// What an open end of a channel keeps while nothing is under way, and what is left of a closed one.
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "support/allocated_bytes.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using test::allocated_bytes;
using test::InProcessJob;
using test::JobOptions;

constexpr std::uint32_t kChannels = 1000;

/// Both ends, which are in this process.
struct Pair {
  Channel left, right;
};

void send_and_receive(InProcessJob& job, Channel& from, Channel& to) {
  std::uint64_t sent = 1, landed = 0;
  Operation receive = to.recv(Buffer(&landed, sizeof(landed), MemoryKind::host));
  Operation send = from.send(ConstBuffer(&sent, sizeof(sent), MemoryKind::host));
  ASSERT_TRUE(job.outcome(receive).ok());
  ASSERT_TRUE(job.outcome(send).ok());
}

struct Bytes {
  std::size_t open, closed;  ///< More than before.
};

/// Opens them, sends a small message each way on each, and closes them. Always the same ids.
Bytes open_and_close(InProcessJob& job) {
  std::vector<Pair> pairs(kChannels);
  const std::size_t before = allocated_bytes();
  for (std::uint32_t i = 0; i < kChannels; ++i) {
    pairs[i].left = Channel::open(job.rank(0), Rank{1}, ChannelId{100 + i});
    pairs[i].right = Channel::open(job.rank(1), Rank{0}, ChannelId{100 + i});
    send_and_receive(job, pairs[i].left, pairs[i].right);
    send_and_receive(job, pairs[i].right, pairs[i].left);
  }
  job.run(100);
  const std::size_t open = allocated_bytes();
  for (Pair& pair : pairs) {
    pair.left.close();
    pair.right.close();
  }
  job.run(5000);
  return {open - before, allocated_bytes() - before};
}

class OpenEnds : public testing::TestWithParam<bool> {};

TEST_P(OpenEnds, keep_one_kilobyte_each_at_rest_and_closed_ones_next_to_nothing) {
  JobOptions options;
  options.links = GetParam();
  InProcessJob job(options);
  {
    Pair first{Channel::open(job.rank(0), Rank{1}, ChannelId{1}), Channel::open(job.rank(1), Rank{0}, ChannelId{1})};
    send_and_receive(job, first.left, first.right);  // the pools of the process
    send_and_receive(job, first.right, first.left);
  }
  const Bytes once = open_and_close(job), twice = open_and_close(job), thrice = open_and_close(job);
  EXPECT_LE(once.open / (2 * kChannels), 1024u) << once.open << " bytes for " << 2 * kChannels << " ends";
  // Numbers go on when an id is opened again: Channel says that some 50 bytes stay.
  EXPECT_LE(once.closed / (2 * kChannels), 64u) << once.closed << " bytes for " << 2 * kChannels << " ends";
  EXPECT_EQ(twice.closed, 0u);
  EXPECT_EQ(thrice.closed, 0u);
  RecordProperty("bytes_of_an_end", static_cast<int>(once.open / (2 * kChannels)));
}

INSTANTIATE_TEST_SUITE_P(Channels, OpenEnds, testing::Bool(),
                         [](const auto& info) { return info.param ? "with_links" : "over_the_network"; });

}  // namespace
}  // namespace brant
