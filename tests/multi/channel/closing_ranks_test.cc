// Runs as every rank of a job: a channel is closed while messages are under way that nobody observes any more.
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "multi/channel/block.h"
#include "support/job_runtime.h"

namespace brant {
namespace {

using test::Block;
using test::job;

class ClosingRanks : public testing::Test {
 protected:
  static constexpr std::uint32_t kFirstId = 70'000;

  /// Both of a pair have come here.
  void meet() {
    const int word = 1;
    int got = 0;
    const auto exchange = [&]() -> Task<void> {
      Operation receive = words_.recv(Buffer(&got, sizeof(got)));
      EXPECT_TRUE((co_await words_.send(ConstBuffer(&word, sizeof(word)))).ok());
      EXPECT_TRUE((co_await receive).ok());
    };
    job().run(exchange());
  }
  Channel next_channel() {
    const auto self = static_cast<unsigned>(job().rank().value);
    return Channel::open(job(), Rank{job().rank().value ^ 1}, ChannelId{kFirstId + 100 * ++opened_ + self / 2});
  }

  /// One end forgets a message that is under way, closes, and spoils the source; the other one receives it before or
  /// after that.
  void forget(MemoryKind from, MemoryKind to, std::size_t bytes, bool receive_first) {
    Channel channel = next_channel();
    const unsigned seed = opened_;
    if (sends_) {
      Block source(from, bytes);
      source.fill(seed);
      meet();
      {
        Operation forgotten = channel.send(source.view());
        for (unsigned round = 0; round < seed % 8; ++round) job().worker().progress();
      }
      channel.close();
      source.fill(seed + 100);
      meet();
      return;
    }
    Block landing(to, bytes);
    meet();
    std::unique_ptr<Operation> receive;
    if (receive_first) receive.reset(new Operation(channel.recv(landing.view())));
    meet();
    if (!receive_first) receive.reset(new Operation(channel.recv(landing.view())));
    ASSERT_EQ(job().worker().wait_until([&]() noexcept { return receive->done(); }), Status::ok);
    const Status status = receive->result().status;
    ASSERT_TRUE(status == Status::ok || status == Status::canceled) << status_name(status);
    if (status == Status::ok) {
      EXPECT_TRUE(landing.holds(seed, bytes)) << "read after the channel was closed";
    }
  }

  const bool sends_ = job().rank().value % 2 == 0;
  Channel words_ = Channel::open(job(), Rank{job().rank().value ^ 1},
                                 ChannelId{kFirstId + static_cast<std::uint32_t>(job().rank().value) / 2});
  unsigned opened_ = 0;
};

TEST_F(ClosingRanks, the_source_of_a_forgotten_message_is_free_when_close_returns) {
  std::vector<MemoryKind> kinds = {MemoryKind::host};
  if (job().device_kind() != MemoryKind::host) kinds.push_back(job().device_kind());
  for (const MemoryKind from : kinds) {
    for (const MemoryKind to : kinds) {
      for (const std::size_t bytes : {std::size_t{5000}, std::size_t{60'000}, std::size_t{3'000'000}}) {
        for (unsigned turn = 0; turn < 8; ++turn) {
          SCOPED_TRACE(testing::Message() << memory_kind_name(from) << " to " << memory_kind_name(to) << ", " << bytes
                                          << " bytes, turn " << turn);
          forget(from, to, bytes, turn % 2 == 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace brant
