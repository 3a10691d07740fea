// What closing a channel does to sends that nobody observes any more: their sources are free when it returns, and the
// other end has either all of a message or none of it.

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "core/engine.h"
#include "ops/channel/table.h"
#include "port/wire/faulty/faulty.h"
#include "support/effort.h"
#include "unit/channel/linked_pair.h"

namespace brant {
namespace {

using test::JobOptions;
using test::kLarge;
using test::linked;
using test::MappedPair;
using test::Pair;
using test::pattern;

ChannelTable& table(Pair& pair, int rank) { return pair.job.rank(rank).worker().engine().service<ChannelTable>(); }

std::size_t ends_in_use(Pair& pair) { return table(pair, 0).ends_in_use() + table(pair, 1).ends_in_use(); }

/// Posts a send, forgets it, closes the channel, and spoils the source.
template <typename Spoil>
void send_and_close(Pair& pair, ConstBuffer source, Spoil&& spoil) {
  {
    Operation forgotten = pair.left.send(source);
    ASSERT_FALSE(forgotten.done()) << "the source is free already: nothing is tested";
  }
  pair.left.close();
  spoil();
}

void open_again(Pair& pair) { pair.left = Channel::open(pair.job.rank(0), Rank{1}, ChannelId{7}); }

void expect_none_and_go_on(Pair& pair, Buffer landing) {
  Operation receive = pair.right.recv(landing);
  EXPECT_EQ(pair.outcome(receive).status, Status::canceled);
  open_again(pair);
  test::expect_order_goes_on(pair);
}

TEST(ClosingChannel, ends_a_message_that_waits_for_its_receive) {
  Pair pair;
  auto source = pattern(kLarge, 1);
  send_and_close(pair, std::span(source), [&] { std::vector<std::byte>().swap(source); });
  std::vector<std::byte> landed(kLarge);
  expect_none_and_go_on(pair, std::span(landed));
}

TEST(ClosingChannel, ends_a_message_whose_receive_waits) {
  Pair pair;
  auto source = pattern(kLarge, 1);
  std::vector<std::byte> landed(kLarge);
  {
    Operation forgotten = pair.left.send(std::span(source));
  }
  Operation receive = pair.right.recv(std::span(landed));
  pair.left.close();
  EXPECT_EQ(pair.outcome(receive).status, Status::canceled);
  open_again(pair);
  test::expect_order_goes_on(pair);
}

TEST(ClosingChannel, takes_back_the_offer_of_a_message_that_can_be_mapped) {
  Pair pair;
  Memory source = pair.job.rank(0).allocate(MemoryKind::host, kLarge);
  send_and_close(pair, source, [&] { std::fill_n(source.as<std::byte>(), kLarge, std::byte{0xee}); });
  pair.job.run(5);
  std::vector<std::byte> landed(kLarge);
  expect_none_and_go_on(pair, std::span(landed));
}

TEST(ClosingChannel, keeps_small_messages_that_wait_for_room) {
  Pair pair;
  constexpr std::size_t kBytes = 8000;
  std::vector<std::vector<std::byte>> sources;
  std::size_t waiting = 0;
  for (unsigned message = 0; message < 200; ++message) {
    sources.push_back(pattern(kBytes, message));
    Operation forgotten = pair.left.send(std::span(sources.back()));
    waiting += forgotten.done() ? 0 : 1;
  }
  ASSERT_NE(waiting, 0u);
  pair.left.close();
  for (auto& source : sources) std::fill(source.begin(), source.end(), std::byte{0xee});
  for (unsigned message = 0; message < sources.size(); ++message) {
    std::vector<std::byte> landed(kBytes);
    Operation receive = pair.right.recv(std::span(landed));
    ASSERT_TRUE(pair.outcome(receive).ok()) << message;
    ASSERT_EQ(landed, pattern(kBytes, message)) << message;
  }
}

TEST(ClosingChannel, waits_for_a_device_that_copies) {
  for (const Path path : {Path::automatic, Path::staged}) {
    JobOptions options = linked(GpuChoice::emulated);
    options.runtime.path = path;
    MappedPair pair(options);
    const auto sent = pattern(kLarge, 4);
    Memory source = pair.filled(0, sent);
    Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, kLarge);
    Operation receive = pair.right.recv(landing);
    pair.job.run(5);
    send_and_close(pair, source, [&] { source = Memory(); });
    ASSERT_TRUE(pair.outcome(receive).ok()) << path_name(path);
    EXPECT_EQ(pair.contents(1, landing), sent) << path_name(path);
  }
}

TEST(ClosingChannel, a_send_given_up_after_the_close_is_let_go_as_well) {
  Pair pair;
  auto source = pattern(kLarge, 1);
  {
    Operation send = pair.left.send(std::span(source));
    pair.left.close();
    pair.job.run(5);
    EXPECT_FALSE(send.done()) << "it goes on while somebody observes it";
  }
  std::vector<std::byte>().swap(source);
  std::vector<std::byte> landed(kLarge);
  expect_none_and_go_on(pair, std::span(landed));
}

TEST(ClosingChannel, a_send_given_up_when_both_ends_are_closed_finds_its_end_still_there) {
  JobOptions options = linked(GpuChoice::emulated);
  options.runtime.path = Path::staged;
  MappedPair pair(options);
  Memory source = pair.filled(0, pattern(1000, 1));
  Channel left = Channel::open(pair.job.rank(0), Rank{0}, ChannelId{100});
  Channel right = Channel::open(pair.job.rank(0), Rank{0}, ChannelId{100});
  {
    Operation send = left.send(source);
    left.close();
    right.close();
    EXPECT_FALSE(send.done());
  }
  source = Memory();
  pair.job.run(10);
  EXPECT_EQ(ends_in_use(pair), 2u);
}

TEST(ClosingChannel, an_observed_send_goes_on) {
  Pair pair;
  const auto source = pattern(kLarge, 1);
  Operation send = pair.left.send(std::span(source));
  pair.left.close();
  test::expect_received(pair, send, source);
}

/// The sender of a test in one thread cannot wait for the receiver, which has to move before the source is free.
TEST(ClosingChannel, gets_the_source_of_a_message_back_that_the_network_has) {
  for (const bool with_links : {false, true}) {
    JobOptions options = linked(GpuChoice::emulated);
    options.links = with_links;
    options.network_takes_device = true;
    options.mappable = [](const port::ExportRecord&) { return false; };
    MappedPair pair(options);
    Memory source = pair.filled(0, pattern(kLarge, 4));
    Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, kLarge);
    {
      Operation forgotten = pair.left.send(source);
      EXPECT_FALSE(forgotten.done());
    }
    pair.left.close();
    pair.job.run(20);
    source = Memory();
    Operation receive = pair.right.recv(landing);
    EXPECT_EQ(pair.outcome(receive).status, Status::canceled) << with_links;
    open_again(pair);
    test::expect_order_goes_on(pair);
  }
}

/// The next receive must not get what its sender wants back.
TEST(ClosingChannel, gets_a_source_back_whose_receive_is_being_withdrawn) {
  JobOptions options;
  options.links = false;
  options.wrap = [](int rank, std::unique_ptr<port::Wire> wire) -> std::unique_ptr<port::Wire> {
    if (rank == 0) return wire;
    port::FaultPolicy policy;
    policy.completion_delay = 40;
    return std::make_unique<port::FaultyWire>(std::move(wire), policy);
  };
  Pair pair(options);
  pair.job.run(50);
  const auto source = pattern(kLarge, 1);
  std::vector<std::byte> landed(kLarge);
  Operation withdrawn = pair.right.recv(std::span(landed));
  withdrawn.op().cancel();
  {
    Operation forgotten = pair.left.send(std::span(source));
  }
  pair.left.close();
  EXPECT_EQ(pair.outcome(withdrawn).status, Status::canceled);
  pair.job.run(200);
  EXPECT_EQ(table(pair, 0).live(), 0u) << "the source is still wanted back";
  expect_none_and_go_on(pair, std::span(landed));
}

TEST(ClosingChannel, has_all_patience_again_with_a_peer_that_moves_again) {
  Pair pair;
  pair.job.run(20);
  SourcePatience& patience = table(pair, 0).with(pair.job.rank(0).worker().engine().peers()[1]).patience;
  Memory source = pair.job.rank(0).allocate(MemoryKind::host, kLarge);
  {
    Operation forgotten = pair.left.send(source);
  }
  pair.left.close();
  patience.waited(SourcePatience::kWhole, false);
  pair.run(0, 20);
  EXPECT_EQ(patience.left(), std::chrono::nanoseconds(0));
  pair.job.run(20);  // it lets the source go
  EXPECT_EQ(patience.left(), SourcePatience::kWhole);
  patience.waited(SourcePatience::kWhole, false);
  pair.right.close();
  pair.job.run(20);
  EXPECT_EQ(patience.left(), SourcePatience::kWhole);
}

TEST(ClosingChannel, looks_once_more_when_its_time_is_over) {
  Pair pair;
  int looks = 0;
  const auto second_time = [](void* seen) noexcept { return ++*static_cast<int*>(seen) == 2; };
  EXPECT_TRUE(
      pair.job.rank(0).worker().engine().waiting().wait_quietly(second_time, &looks, std::chrono::nanoseconds(0)));
}

/// Two ends of one channel beside those of the pair.
struct Ends {
  Ends(Pair& pair, std::uint32_t id)
      : left(Channel::open(pair.job.rank(0), Rank{1}, ChannelId{id})),
        right(Channel::open(pair.job.rank(1), Rank{0}, ChannelId{id})) {}
  void close(bool left_first) {
    (left_first ? left : right).close();
    (left_first ? right : left).close();
  }
  Channel left, right;
};

JobOptions with_links(bool links) {
  JobOptions options = linked();
  options.links = links;
  if (!links) options.runtime.path = Path::automatic;
  return options;
}

class ClosedEnds : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(OverLinkAndNetwork, ClosedEnds, testing::Bool());

TEST_P(ClosedEnds, leave_nothing_but_numbers_however_many_there_were) {
  Pair pair(with_links(GetParam()));
  const std::size_t before = ends_in_use(pair);
  for (std::uint32_t round = 0; round < 10'000; ++round) {
    Ends ends(pair, 100 + round);
    int got = 0;
    const int value = static_cast<int>(round);
    Operation receive = ends.right.recv(Buffer(&got, sizeof(got)));
    Operation send = ends.left.send(ConstBuffer(&value, sizeof(value)));
    ASSERT_TRUE(pair.outcome(receive).ok() && pair.outcome(send).ok());
    ends.close(round % 2 == 0);
    if (round % 100 == 0) {
      pair.job.run(10);
      ASSERT_EQ(ends_in_use(pair), before) << round;
    }
  }
  pair.job.run(10);
  EXPECT_EQ(ends_in_use(pair), before);
}

TEST_P(ClosedEnds, go_on_where_they_were_when_they_are_opened_again) {
  Pair pair(with_links(GetParam()));
  const auto small = pattern(100, 1), large = pattern(kLarge, 2);
  std::vector<std::byte> landed(kLarge);
  for (std::uint32_t round = 0; round < test::effort(120u, 36u); ++round) {
    Ends ends(pair, 100);
    std::ranges::fill(landed, std::byte{0});
    const auto& sent = round % 3 == 0 ? large : small;
    Operation receive = ends.right.recv(std::span(landed));
    Operation unmet = ends.left.recv(std::span(landed));
    Operation send = ends.left.send(std::span(sent));
    ASSERT_TRUE(pair.outcome(receive).ok()) << round;
    ASSERT_TRUE(pair.outcome(send).ok()) << round;
    ASSERT_TRUE(std::equal(sent.begin(), sent.end(), landed.begin())) << round;
    ends.close(round % 2 == 0);
    pair.job.run(static_cast<int>(round % 4) * 3);  // forgotten or not
    ASSERT_EQ(pair.outcome(unmet).status, Status::canceled);
  }
}

TEST_P(ClosedEnds, drop_what_was_not_received_once_both_are_closed) {
  Pair pair(with_links(GetParam()));
  const std::size_t before = ends_in_use(pair);
  const auto small = pattern(200, 1), large = pattern(kLarge, 2);
  for (std::uint32_t round = 0; round < 500; ++round) {
    Ends ends(pair, 100 + round % 2);
    Operation first = ends.left.send(std::span(small));
    Operation second = ends.left.send(std::span(large));
    Operation third = ends.left.send(std::span(small), Moment::delivered);
    if (round % 3 != 0) pair.job.run(5);
    ends.close(round % 2 == 0);
    const Status of_large = pair.outcome(second).status;  // a network may say first that nobody took all of it
    ASSERT_TRUE(of_large == Status::canceled || of_large == Status::truncated) << round << status_name(of_large);
    ASSERT_EQ(pair.outcome(third).status, Status::canceled) << round;
    pair.job.run(10);
    ASSERT_EQ(ends_in_use(pair), before) << round;
  }
  EXPECT_EQ(table(pair, 1).pools().arrivals.lent(), 0u);
  EXPECT_EQ(table(pair, 0).live() + table(pair, 1).live(), 0u);
  Ends ends(pair, 100);
  int value = 3, got = 0;
  Operation receive = ends.right.recv(Buffer(&got, sizeof(got)));
  Operation send = ends.left.send(ConstBuffer(&value, sizeof(value)));
  EXPECT_TRUE(pair.outcome(receive).ok());
  EXPECT_EQ(got, 3);
}

TEST_P(ClosedEnds, keep_what_the_other_end_sent_in_its_next_opening) {
  Pair pair(with_links(GetParam()));
  for (std::uint32_t round = 0; round < 5; ++round) {
    Channel left = Channel::open(pair.job.rank(0), Rank{1}, ChannelId{100});
    const std::uint32_t value = round;
    Operation send = left.send(ConstBuffer(&value, sizeof(value)));
    EXPECT_TRUE(pair.outcome(send).ok());
    left.close();
    pair.job.run(5);
  }
  for (std::uint32_t round = 0; round < 5; ++round) {
    Channel right = Channel::open(pair.job.rank(1), Rank{0}, ChannelId{100});
    std::uint32_t got = ~0u;
    Operation receive = right.recv(Buffer(&got, sizeof(got)));
    ASSERT_TRUE(pair.outcome(receive).ok()) << round;
    EXPECT_EQ(got, round);
    right.close();
    pair.job.run(5);
  }
  pair.job.run(10);
  EXPECT_EQ(ends_in_use(pair), 2u);
}

TEST_P(ClosedEnds, that_closed_before_the_other_was_opened_drop_the_rest_once_that_is_closed) {
  Pair pair(with_links(GetParam()));
  const std::size_t before = ends_in_use(pair);
  const int values[] = {1, 2};
  for (int round = 0; round < 5; ++round) {
    Channel left = Channel::open(pair.job.rank(0), Rank{1}, ChannelId{100});
    Operation first = left.send(ConstBuffer(&values[0], sizeof(int)));
    Operation second = left.send(ConstBuffer(&values[1], sizeof(int)));
    left.close();
    pair.job.run(5);
    Channel right = Channel::open(pair.job.rank(1), Rank{0}, ChannelId{100});
    int got = 0;
    EXPECT_TRUE(pair.outcome(right.recv(Buffer(&got, sizeof(got)))).ok());
    EXPECT_EQ(got, 1);
    right.close();
    pair.job.run(10);
    ASSERT_EQ(ends_in_use(pair), before) << round;
  }
}

TEST_P(ClosedEnds, count_a_message_once_that_meets_a_receive_which_is_being_withdrawn) {
  Pair pair(with_links(GetParam()));
  const std::size_t before = ends_in_use(pair);
  std::vector<std::byte> landed(kLarge);
  const auto small = pattern(100, 1), large = pattern(kLarge, 2);
  for (unsigned round = 0; round < 600; ++round) {  // more than a window, in which a number comes again
    SCOPED_TRACE(round);
    const auto& sent = round % 2 == 0 ? large : small;
    Ends ends(pair, 100);
    std::unique_ptr<Operation> withdrawn(new Operation(ends.right.recv(std::span(landed))));
    if (round % 3 != 0) pair.run(1, 3);
    Operation met = ends.left.send(std::span(sent));
    pair.run(0, round % 5);
    ends.close(round % 7 < 3);
    if (round % 4 == 0) withdrawn.reset();
    pair.job.run(15);
    ASSERT_TRUE(met.done());
    ASSERT_EQ(ends_in_use(pair), before);
  }
  Ends ends(pair, 100);
  for (unsigned message = 0; message < 600; ++message) {
    const auto sent = pattern(100, message);
    Operation receive = ends.right.recv(std::span(landed));
    Operation send = ends.left.send(std::span(sent));
    ASSERT_TRUE(pair.outcome(receive).ok()) << message;
    ASSERT_TRUE(std::equal(sent.begin(), sent.end(), landed.begin())) << message;
  }
}

TEST_P(ClosedEnds, want_a_source_back_once) {
  Pair pair(with_links(GetParam()));
  const std::size_t before = ends_in_use(pair);
  const auto first = pattern(kLarge, 1), second = pattern(kLarge, 2);
  for (unsigned round = 0; round < 5; ++round) {
    Ends ends(pair, 100);
    pair.job.run(20);
    {
      Operation forgotten_later = ends.left.send(std::span(first));
      {
        Operation forgotten = ends.left.send(std::span(second));
      }
      ends.left.close();
    }
    pair.job.run(50);
    ends.right.close();
    pair.job.run(50);
    ASSERT_EQ(ends_in_use(pair), before) << round;
  }
  EXPECT_EQ(table(pair, 0).live() + table(pair, 1).live(), 0u);
}

TEST_P(ClosedEnds, keep_the_numbers_of_each_peer_apart) {
  JobOptions options = with_links(GetParam());
  options.ranks = 3;
  Pair pair(options);
  for (int round = 0; round < 6; ++round) {
    const int other = 1 + round % 2;
    Channel left = Channel::open(pair.job.rank(0), Rank{other}, ChannelId{100});
    Channel right = Channel::open(pair.job.rank(other), Rank{0}, ChannelId{100});
    for (int message = 0; message <= other; ++message) {
      int got = 0;
      Operation receive = right.recv(Buffer(&got, sizeof(got)));
      Operation send = left.send(ConstBuffer(&round, sizeof(round)));
      ASSERT_TRUE(pair.outcome(receive).ok()) << round;
      EXPECT_EQ(got, round);
    }
    left.close();
    right.close();
    pair.job.run(10);
  }
  EXPECT_EQ(ends_in_use(pair), 2u);
}

TEST_P(ClosedEnds, of_a_peer_that_is_gone_leave_nothing) {
  Pair pair(with_links(GetParam()));
  const auto small = pattern(200, 1);
  std::vector<Channel> others;
  for (std::uint32_t id = 100; id < 110; ++id) {
    Ends ends(pair, id);
    Operation back = ends.right.send(std::span(small));
    Operation forth = ends.left.send(std::span(small));
    pair.job.run(5);
    ends.left.close();
    others.push_back(std::move(ends.right));
  }
  EXPECT_GT(table(pair, 0).ends_in_use(), 10u) << "what was sent may still be received";
  Engine& engine = pair.job.rank(0).worker().engine();
  engine.peers().suspect(engine.peers().connect(Rank{1}));
  pair.left.close();
  pair.run(0, 100);
  EXPECT_EQ(table(pair, 0).ends_in_use(), 0u);
  pair.job.rank(0).tidy();
  EXPECT_EQ(table(pair, 0).links_in_use(), 0u);
}

TEST_P(ClosedEnds, of_a_peer_that_is_gone_are_not_remembered) {
  Pair pair(with_links(GetParam()));
  for (std::uint32_t id = 100; id < 110; ++id) Ends(pair, id).close(true);
  pair.job.run(20);
  EXPECT_EQ(table(pair, 0).ends_remembered(), 10u);
  Engine& engine = pair.job.rank(0).worker().engine();
  engine.peers().suspect(engine.peers().connect(Rank{1}));
  pair.run(0, 100);
  EXPECT_EQ(table(pair, 0).ends_remembered(), 0u);
}

}  // namespace
}  // namespace brant
