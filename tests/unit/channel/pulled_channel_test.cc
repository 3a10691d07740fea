// Large messages in host memory that their receiver can map: it copies them from where they are.

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "core/engine.h"
#include "ops/channel/link_message.h"
#include "unit/channel/linked_pair.h"

namespace brant {
namespace {

using test::JobOptions;
using test::kLarge;
using test::linked;
using test::Pair;
using test::pattern;

constexpr std::size_t kTurns = std::size_t{5} << 20;  // takes several polls

JobOptions by_choice() {
  JobOptions options = linked();
  options.runtime.path = Path::automatic;
  return options;
}

/// Memory of a rank that others can map.
Memory shared(Pair& pair, int rank, const std::vector<std::byte>& bytes) {
  Memory memory = pair.job.rank(rank).allocate(MemoryKind::host, bytes.size());
  std::memcpy(memory.data(), bytes.data(), bytes.size());
  return memory;
}

std::uint64_t sends(Pair& pair, Path path) {
  return pair.job.rank(0).worker().engine().counters().path(path).sends.read();
}

TEST(PulledChannel, a_message_is_offered_if_it_is_not_too_small_and_can_be_mapped_and_else_leaves_at_once) {
  Pair pair;
  const auto wanted = pattern(16384, 3);
  const Memory mapped = shared(pair, 0, wanted);
  const std::vector<std::byte> other(wanted);
  const auto leaves_at_once = [&](const std::byte* from, std::size_t bytes, bool receive_first) {
    std::vector<std::byte> landed(bytes);
    std::unique_ptr<Operation> receive;
    if (receive_first) receive.reset(new Operation(pair.right.recv(std::span(landed))));
    pair.job.run(5);
    Operation send = pair.left.send(ConstBuffer(from, bytes, MemoryKind::host));
    const bool at_once = send.done();
    if (!receive_first) receive.reset(new Operation(pair.right.recv(std::span(landed))));
    EXPECT_TRUE(pair.outcome(*receive).ok());
    EXPECT_TRUE(pair.outcome(send).ok());
    EXPECT_TRUE(std::equal(landed.begin(), landed.end(), wanted.begin()));
    return at_once;
  };
  const auto* source = static_cast<const std::byte*>(mapped.data());
  for (const bool receive_first : {true, false}) {
    EXPECT_FALSE(leaves_at_once(source, kEagerBytes + 1, receive_first));
    EXPECT_FALSE(leaves_at_once(source, kOfferedBytes, receive_first)) << "the receiver copies it";
    EXPECT_TRUE(leaves_at_once(source, kOfferedBytes - 1, receive_first));
  }
  EXPECT_TRUE(leaves_at_once(other.data(), kEagerBytes, true)) << "no other process can map it";
  int at_once = 0;
  while (at_once < 100 && leaves_at_once(source, kEagerBytes, true)) ++at_once;
  EXPECT_EQ(at_once, 63) << "it is asked again after some messages";
}

TEST(PulledChannel, a_message_counts_once_for_the_path_it_took_and_that_path_is_foretold) {
  Pair pair(by_choice());
  const auto wanted = pattern(65536, 3);
  const Memory source = shared(pair, 0, wanted);
  EXPECT_EQ(*pair.left.path_of(ConstBuffer(source)), Path::shm);
  EXPECT_EQ(*pair.left.path_of(MemoryKind::host, wanted.size()), Path::shm);
  Operation send = pair.left.send(ConstBuffer(source));
  pair.job.run(5);
  EXPECT_EQ(sends(pair, Path::ucx), 0u) << "it has not gone yet, and will not go there";
  std::vector<std::byte> landed(wanted.size());
  Operation receive = pair.right.recv(std::span(landed));
  EXPECT_TRUE(pair.outcome(receive).ok());
  EXPECT_TRUE(pair.outcome(send).ok());
  EXPECT_EQ(sends(pair, Path::ucx), 0u);
  EXPECT_EQ(sends(pair, Path::shm), 1u);
  EXPECT_EQ(pair.job.rank(1).worker().engine().counters().path(Path::shm).receives.read(), 1u);
}

/// Receives that take what is offered are not told of; one whose message cannot be mapped is asked for, and the next
/// ones are told of again.
TEST(PulledChannel, offers_and_other_large_messages_follow_each_other) {
  Pair pair;
  const auto wanted = pattern(50'000, 3);
  const Memory mapped = shared(pair, 0, wanted);
  for (int round = 0; round < 12; ++round) {
    const auto* source = round / 3 % 2 == 0 ? static_cast<const std::byte*>(mapped.data()) : wanted.data();
    std::vector<std::byte> landed(wanted.size());
    Operation receive = pair.right.recv(std::span(landed));
    pair.job.run(5);
    Operation send = pair.left.send(ConstBuffer(source, wanted.size(), MemoryKind::host));
    EXPECT_TRUE(pair.outcome(receive).ok());
    EXPECT_TRUE(pair.outcome(send).ok());
    EXPECT_EQ(landed, wanted) << "round " << round;
  }
}

TEST(PulledChannel, a_message_is_copied_from_where_it_is_whichever_side_comes_first) {
  for (const Path path : {Path::automatic, Path::shm}) {
    for (const bool receive_first : {true, false}) {
      for (const std::size_t bytes : {std::size_t{16384}, std::size_t{65536}, kLarge, std::size_t{5} << 20}) {
        SCOPED_TRACE(std::string(path_name(path)) + (receive_first ? ", receive first, " : ", send first, ") +
                     std::to_string(bytes));
        JobOptions options = linked();
        options.runtime.path = path;
        Pair pair(options);
        const auto wanted = pattern(bytes, 3);
        const Memory source = shared(pair, 0, wanted);
        std::vector<std::byte> landed(bytes + 1, std::byte{0xee});
        std::unique_ptr<Operation> receive;
        if (receive_first) {
          receive.reset(new Operation(pair.right.recv(Buffer(landed.data(), bytes))));
          pair.job.run(5);
        }
        Operation send = pair.left.send(ConstBuffer(source), Moment::delivered);
        pair.job.run(5);
        if (!receive_first) {
          EXPECT_FALSE(send.done());
          receive.reset(new Operation(pair.right.recv(Buffer(landed.data(), bytes))));
        }
        EXPECT_EQ(pair.outcome(*receive).bytes, bytes);
        EXPECT_TRUE(pair.outcome(send).ok());
        EXPECT_EQ(landed.back(), std::byte{0xee});
        landed.pop_back();
        EXPECT_EQ(landed, wanted);
        EXPECT_EQ(sends(pair, Path::shm), 1u);
        EXPECT_EQ(sends(pair, Path::ucx), 0u);
      }
    }
  }
}

TEST(PulledChannel, a_landing_that_crosses_the_offer_changes_nothing) {
  JobOptions options = linked();
  Pair pair(options);
  const auto wanted = pattern(kTurns, 3);
  const Memory source = shared(pair, 0, wanted);
  std::vector<std::byte> landed(kTurns);
  Operation receive = pair.right.recv(std::span(landed));  // announced: it is large, and path shm is forced
  Operation send = pair.left.send(ConstBuffer(source));    // not known there yet
  EXPECT_TRUE(pair.outcome(receive).ok());
  EXPECT_TRUE(pair.outcome(send).ok());
  EXPECT_EQ(landed, wanted);
  test::expect_order_goes_on(pair);
}

TEST(PulledChannel, no_piece_goes_through_the_ring) {
  Pair pair(by_choice());
  const auto wanted = pattern(100'000, 3);
  const Memory source = shared(pair, 0, wanted);
  std::vector<std::byte> landed(wanted.size());
  Operation receive = pair.right.recv(std::span(landed));
  Operation send = pair.left.send(ConstBuffer(source));
  pair.run(1, 1);  // the receiver alone: it needs no more of the sender than its word
  EXPECT_TRUE(receive.done());
  EXPECT_EQ(landed, wanted);
  EXPECT_FALSE(send.done());
  pair.run(0, 1);
  EXPECT_TRUE(send.done());
}

TEST(PulledChannel, parts_of_one_allocation_are_found) {
  Pair pair(by_choice());
  const auto all = pattern(kLarge, 9);
  const Memory source = shared(pair, 0, all);
  for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, std::size_t{4097}, kLarge - 20'000}) {
    std::vector<std::byte> landed(20'000);
    Operation receive = pair.right.recv(std::span(landed));
    Operation send = pair.left.send(source.part(offset, landed.size()));
    EXPECT_TRUE(pair.outcome(receive).ok());
    EXPECT_TRUE(pair.outcome(send).ok());
    EXPECT_EQ(std::memcmp(landed.data(), all.data() + offset, landed.size()), 0) << offset;
  }
}

TEST(PulledChannel, memory_freed_and_allocated_again_is_mapped_again) {
  Pair pair(by_choice());
  for (unsigned round = 0; round < 20; ++round) {
    const auto wanted = pattern(100'000, round);
    const Memory source = shared(pair, 0, wanted);
    std::vector<std::byte> landed(wanted.size());
    Operation receive = pair.right.recv(std::span(landed));
    Operation send = pair.left.send(ConstBuffer(source));
    EXPECT_TRUE(pair.outcome(receive).ok());
    EXPECT_TRUE(pair.outcome(send).ok());
    EXPECT_EQ(landed, wanted) << round;
  }
  EXPECT_EQ(sends(pair, Path::shm), 20u);
}

TEST(PulledChannel, a_long_message_is_truncated_and_both_ends_know_it) {
  Pair pair(by_choice());
  const Memory source = shared(pair, 0, pattern(kLarge, 1));
  test::expect_truncated_at_both_ends(pair, source);
}

TEST(PulledChannel, a_cancel_in_mid_message_comes_too_late) {
  Pair pair(by_choice());
  const auto wanted = pattern(kLarge, 2);
  const Memory source = shared(pair, 0, wanted);
  std::vector<std::byte> landed(kLarge);
  Operation receive = pair.right.recv(std::span(landed));
  Operation send = pair.left.send(ConstBuffer(source));
  pair.run(1, 1);  // a part of it
  ASSERT_FALSE(receive.done());
  receive.op().cancel();
  EXPECT_TRUE(pair.outcome(receive).ok());
  EXPECT_TRUE(pair.outcome(send).ok());
  EXPECT_EQ(landed, wanted);
}

TEST(PulledChannel, a_receive_taken_back_at_any_time_loses_nothing) {
  for (const int rounds : {0, 1, 2}) {
    for (const bool known : {true, false}) {
      Pair pair(by_choice());
      const auto wanted = pattern(kTurns, 4);
      const Memory source = shared(pair, 0, wanted);
      auto gone = std::make_unique<std::vector<std::byte>>(kTurns);
      auto receive = std::unique_ptr<Operation>(new Operation(pair.right.recv(std::span(*gone))));
      if (known) pair.run(0, 3);
      Operation send = pair.left.send(ConstBuffer(source));
      pair.run(1, rounds);  // nothing of it, or parts
      ASSERT_FALSE(receive->done());
      receive.reset();
      gone.reset();  // from here on the sanitizer watches
      std::vector<std::byte> landed(kTurns);
      Operation next = pair.right.recv(std::span(landed));
      EXPECT_TRUE(pair.outcome(next).ok());
      EXPECT_TRUE(pair.outcome(send).ok());
      EXPECT_EQ(landed, wanted) << rounds << known;
    }
  }
}

TEST(PulledChannel, closing_in_mid_message_ends_the_receive) {
  Pair pair(by_choice());
  const Memory source = shared(pair, 0, pattern(5 << 20, 4));
  std::vector<std::byte> landed(source.bytes());
  Operation receive = pair.right.recv(std::span(landed));
  Operation send = pair.left.send(ConstBuffer(source));
  pair.run(1, 1);
  ASSERT_FALSE(receive.done());
  pair.right.close();
  EXPECT_TRUE(pair.job.run_until([&] { return receive.done(); }));
}

TEST(PulledChannel, many_messages_of_many_channels_take_turns) {
  Pair pair(by_choice());
  constexpr std::size_t kChannels = 5, kMessages = 6;
  std::vector<Channel> from, to;
  std::vector<std::unique_ptr<Operation>> operations;
  std::vector<std::vector<std::byte>> landed(kChannels * kMessages, std::vector<std::byte>(600'000));
  std::vector<Memory> sources;
  for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
    from.push_back(Channel::open(pair.job.rank(0), Rank{1}, ChannelId{100 + channel}));
    to.push_back(Channel::open(pair.job.rank(1), Rank{0}, ChannelId{100 + channel}));
    sources.push_back(shared(pair, 0, pattern(600'000, channel)));
  }
  for (std::size_t message = 0; message < kMessages; ++message) {
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      operations.emplace_back(new Operation(from[channel].send(ConstBuffer(sources[channel]))));
      operations.emplace_back(new Operation(to[channel].recv(std::span(landed[message * kChannels + channel]))));
    }
  }
  for (const auto& operation : operations) EXPECT_TRUE(pair.outcome(*operation).ok());
  for (std::size_t i = 0; i < landed.size(); ++i) {
    EXPECT_EQ(landed[i], pattern(600'000, static_cast<unsigned>(i % kChannels))) << i;
  }
}

TEST(PulledChannel, more_allocations_than_can_be_mapped_go_other_ways) {
  Pair pair(by_choice());
  const std::vector<std::byte> wanted = pattern(20'000, 1);
  std::vector<Memory> sources;
  // HostShares has fewer files than a pair maps allocations, so the later ones are private memory.
  for (std::size_t i = 0; i < 300; ++i) sources.push_back(shared(pair, 0, wanted));
  for (const Memory& source : sources) {
    std::vector<std::byte> landed(wanted.size());
    Operation receive = pair.right.recv(std::span(landed));
    Operation send = pair.left.send(ConstBuffer(source));
    ASSERT_TRUE(pair.outcome(receive).ok());
    ASSERT_TRUE(pair.outcome(send).ok());
    ASSERT_EQ(landed, wanted);
  }
  EXPECT_GT(sends(pair, Path::shm), 0u);
  EXPECT_GT(sends(pair, Path::ucx), 0u);
}

TEST(MappedChannel, device_landings_of_shared_host_memory_are_not_pulled) {
  JobOptions options = linked(GpuChoice::emulated);
  Pair pair(options);
  const auto wanted = pattern(kLarge, 6);
  const Memory source = shared(pair, 0, wanted);
  const Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, kLarge);
  for (const bool receive_first : {true, false}) {
    std::unique_ptr<Operation> receive;
    if (receive_first) receive.reset(new Operation(pair.right.recv(landing)));
    pair.job.run(5);
    Operation send = pair.left.send(ConstBuffer(source));
    pair.job.run(5);
    if (!receive_first) receive.reset(new Operation(pair.right.recv(landing)));
    EXPECT_TRUE(pair.outcome(*receive).ok());
    EXPECT_TRUE(pair.outcome(send).ok());
    std::vector<std::byte> landed(kLarge);
    pair.job.rank(1).copy(std::span(landed), landing);
    EXPECT_EQ(landed, wanted);
  }
}

}  // namespace
}  // namespace brant
