// Small messages in device memory whose receives are late: they go into slots at the receiver.
#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "ops/channel/device_slots.h"
#include "support/in_process_job.h"
#include "unit/channel/linked_pair.h"

namespace brant {
namespace {

using test::MappedPair;
using test::pattern;

constexpr std::size_t kBytes = 4000;

/// Messages that were sent without receives.
struct EarlySends {
  EarlySends(MappedPair& pair_in, std::size_t count, unsigned seed) : pair(pair_in), first(seed) {
    for (std::size_t i = 0; i < count; ++i) {
      sources.push_back(pair.filled(0, message(i)));
      sends.emplace_back(new Operation(pair.left.send(sources.back())));
    }
  }
  [[nodiscard]] std::vector<std::byte> message(std::size_t i) const {
    return pattern(kBytes - i, first + static_cast<unsigned>(i));
  }
  [[nodiscard]] std::size_t done() const {
    return static_cast<std::size_t>(
        std::count_if(sends.begin(), sends.end(), [](const auto& send) { return send->done(); }));
  }
  /// Receives the next message, of those that are not received yet, into memory of `kind`.
  void expect_next(MemoryKind kind) {
    const auto wanted = message(received++);
    Memory landing = pair.job.rank(1).allocate(kind, kBytes);
    const OpResult result = pair.outcome(pair.right.recv(landing));
    ASSERT_TRUE(result.ok()) << status_text(result.status);
    ASSERT_EQ(result.bytes, wanted.size());
    auto got = pair.contents(1, landing);
    got.resize(wanted.size());
    EXPECT_EQ(got, wanted) << "message " << received - 1;
  }

  MappedPair& pair;
  const unsigned first;
  std::vector<Memory> sources;
  std::vector<std::unique_ptr<Operation>> sends;
  std::size_t received = 0;
};

TEST(EarlySend, frees_its_source_before_the_receive_is_there) {
  MappedPair pair;
  for (const MemoryKind to : {MemoryKind::emulated, MemoryKind::host, MemoryKind::pinned}) {
    EarlySends early(pair, 1, 5);
    ASSERT_TRUE(pair.outcome(*early.sends[0]).ok()) << memory_kind_name(to);
    early.sources[0] = pair.filled(0, pattern(kBytes, 99));  // the message is what it was
    early.expect_next(to);
  }
}

TEST(EarlySend, waits_while_all_slots_are_full_and_keeps_the_order) {
  MappedPair pair;
  for (unsigned round = 0; round < 3; ++round) {
    EarlySends early(pair, DeviceSlots::kSlots + 10, round);
    ASSERT_TRUE(pair.job.run_until([&] { return early.done() == DeviceSlots::kSlots; }));
    pair.job.run(2000);
    EXPECT_EQ(early.done(), DeviceSlots::kSlots) << "more messages than slots";
    while (early.received < early.sends.size())
      early.expect_next(early.received % 2 == 0 ? MemoryKind::emulated : MemoryKind::host);
    for (const auto& send : early.sends) EXPECT_TRUE(pair.outcome(*send).ok());
  }
}

TEST(EarlySend, tells_when_the_message_was_received) {
  MappedPair pair;
  Memory source = pair.filled(0, pattern(kBytes, 1));
  Operation send = pair.left.send(source, Moment::delivered);
  pair.job.run(2000);
  EXPECT_FALSE(send.done());
  Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, kBytes);
  EXPECT_TRUE(pair.outcome(pair.right.recv(landing)).ok());
  EXPECT_TRUE(pair.outcome(send).ok());
}

TEST(EarlySend, meets_a_receive_that_is_posted_while_it_goes_into_its_slot) {
  MappedPair pair;
  EarlySends(pair, 1, 1).expect_next(MemoryKind::emulated);  // the slots are known now
  Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, kBytes);
  for (unsigned round = 0; round < 200; ++round) {
    const auto sent = pattern(kBytes, round);
    Memory source = pair.filled(0, sent);
    Operation send = pair.left.send(source);
    pair.job.run(static_cast<int>(round));
    Operation receive = pair.right.recv(landing);
    ASSERT_TRUE(pair.outcome(receive).ok());
    ASSERT_TRUE(pair.outcome(send).ok());
    ASSERT_EQ(pair.contents(1, landing), sent) << round;
  }
}

TEST(EarlySend, is_truncated_by_a_receive_that_is_too_small) {
  MappedPair pair;
  EarlySends early(pair, 2, 1);
  ASSERT_TRUE(pair.job.run_until([&] { return early.done() == 2; }));
  Memory small = pair.job.rank(1).allocate(MemoryKind::emulated, kBytes - 1);
  EXPECT_EQ(pair.outcome(pair.right.recv(small)).status, Status::truncated);
  ++early.received;
  early.expect_next(MemoryKind::emulated);
  pair.job.run(100);
  EXPECT_EQ(pair.left.counts().truncated, 1u);
}

TEST(EarlySend, lies_in_its_slot_when_its_receive_was_taken_back) {
  MappedPair pair;
  EarlySends early(pair, 1, 1);
  ASSERT_TRUE(pair.outcome(*early.sends[0]).ok());
  Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, kBytes);
  {
    Operation given_up = pair.right.recv(landing);  // the copy out of the slot has begun
  }
  pair.job.run(2000);
  EarlySends next(pair, 1, 2);
  next.expect_next(MemoryKind::emulated);
}

TEST(EarlySend, whose_source_was_freed_before_a_slot_was_free_is_an_error_at_both_ends) {
  MappedPair pair;
  EarlySends early(pair, DeviceSlots::kSlots + 2, 1);
  ASSERT_TRUE(pair.job.run_until([&] { return early.done() == DeviceSlots::kSlots; }));
  early.sources[DeviceSlots::kSlots] = Memory();
  while (early.received < DeviceSlots::kSlots) early.expect_next(MemoryKind::emulated);
  Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, kBytes);
  EXPECT_EQ(pair.outcome(pair.right.recv(landing)).status, Status::peer_rejected);
  EXPECT_EQ(pair.outcome(*early.sends[DeviceSlots::kSlots]).status, Status::invalid_argument);
  ++early.received;
  early.expect_next(MemoryKind::emulated);
}

TEST(EarlySend, gives_its_slot_back_when_the_channel_goes) {
  MappedPair pair;
  for (std::uint32_t round = 0; round < 3; ++round) {
    Channel left = Channel::open(pair.job.rank(0), Rank{1}, ChannelId{20 + round});
    std::vector<std::unique_ptr<Operation>> sends;
    Memory source = pair.filled(0, pattern(kBytes, round));
    {
      Channel right = Channel::open(pair.job.rank(1), Rank{0}, ChannelId{20 + round});
      for (int i = 0; i < DeviceSlots::kSlots; ++i) sends.emplace_back(new Operation(left.send(source)));
      for (const auto& send : sends) ASSERT_TRUE(pair.outcome(*send).ok()) << "round " << round;
      // A process that is done with a channel may have left messages behind.
      std::vector<std::byte> got(kBytes);
      for (int i = 0; i < DeviceSlots::kSlots; ++i) ASSERT_TRUE(pair.outcome(right.recv(std::span(got))).ok());
    }
  }
}

TEST(EarlySend, is_not_tried_with_memory_that_cannot_be_mapped) {
  test::JobOptions options = test::linked(GpuChoice::emulated);
  options.mappable = [](const port::ExportRecord&) { return false; };
  MappedPair pair(options);
  EarlySends early(pair, 1, 1);
  pair.job.run(5000);
  EXPECT_FALSE(early.sends[0]->done());
  early.expect_next(MemoryKind::emulated);
  EXPECT_TRUE(pair.outcome(*early.sends[0]).ok());
}

}  // namespace
}  // namespace brant
