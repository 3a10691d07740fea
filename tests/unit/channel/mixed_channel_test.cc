// Messages between a device and host memory of another process, which the device reaches through its mapping, and the
// word that a copy engine sets behind its bytes.

#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "core/engine.h"
#include "ops/channel/table.h"
#include "support/environment.h"
#include "unit/channel/linked_pair.h"

namespace brant {
namespace {

using test::JobOptions;
using test::linked;
using test::MappedPair;
using test::pattern;

constexpr std::size_t kBytes = 100'000;

JobOptions automatic() {
  JobOptions options = linked(GpuChoice::emulated);
  options.runtime.path = Path::automatic;
  return options;
}

std::uint64_t sent_by(MappedPair& pair, Path path) {
  return pair.job.rank(0).worker().engine().counters().path(path).sends.read();
}

std::uint64_t received_by(MappedPair& pair, Path path) {
  return pair.job.rank(1).worker().engine().counters().path(path).receives.read();
}

/// One message of device memory into `landing`.
void expect_message(MappedPair& pair, Buffer landing, bool receive_first,
                    const std::function<std::vector<std::byte>()>& got) {
  const auto sent = pattern(landing.bytes, static_cast<unsigned>(pair.left.counts().sent));
  Memory source = pair.filled(0, sent);
  std::unique_ptr<Operation> receive;
  if (receive_first) receive.reset(new Operation(pair.right.recv(landing)));
  pair.job.run(3);
  Operation send = pair.left.send(source);
  if (!receive_first) pair.job.run(3);
  if (!receive_first) receive.reset(new Operation(pair.right.recv(landing)));
  EXPECT_TRUE(pair.outcome(*receive).ok());
  EXPECT_TRUE(pair.outcome(send).ok());
  EXPECT_EQ(receive->result().bytes, sent.size());
  EXPECT_TRUE(got() == sent);
}

TEST(MixedChannel, a_device_writes_into_host_memory_that_it_reaches_whichever_side_comes_first) {
  for (const bool network_takes : {false, true}) {
    JobOptions options = automatic();
    options.network_takes_device = network_takes;
    MappedPair pair(options);
    Memory landing = pair.job.rank(1).allocate(MemoryKind::host, kBytes);
    for (const bool receive_first : {true, false, true}) {
      expect_message(pair, landing, receive_first, [&] { return pair.contents(1, landing); });
    }
    EXPECT_EQ(sent_by(pair, Path::copy_engine), 3u);
    EXPECT_EQ(received_by(pair, Path::copy_engine), 3u);
  }
}

TEST(MixedChannel, other_host_memory_goes_the_way_it_went) {
  MappedPair pair(automatic());
  std::vector<std::byte> landed(kBytes);
  for (const bool receive_first : {true, false, true}) {
    expect_message(pair, std::span(landed), receive_first, [&] { return landed; });
  }
  EXPECT_EQ(sent_by(pair, Path::copy_engine), 0u);
  EXPECT_EQ(sent_by(pair, Path::staged), 3u);
}

TEST(MixedChannel, pinned_memory_is_read_by_the_device_also_where_the_network_takes_it) {
  JobOptions options = automatic();
  options.network_takes_device = true;
  MappedPair pair(options);
  Memory source = pair.job.rank(0).allocate(MemoryKind::pinned, kBytes);
  Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, kBytes);
  const auto sent = pattern(kBytes, 5);
  pair.job.rank(0).copy(source, std::span(sent));
  Operation receive = pair.right.recv(landing);
  pair.job.run(3);
  Operation send = pair.left.send(source);
  EXPECT_TRUE(pair.outcome(receive).ok());
  EXPECT_TRUE(pair.outcome(send).ok());
  EXPECT_TRUE(pair.contents(1, landing) == sent);
  EXPECT_EQ(sent_by(pair, Path::copy_engine), 1u);
}

TEST(MixedChannel, a_landing_that_was_freed_is_let_go_of_outside_progress) {
  MappedPair pair(automatic());
  for (int round = 0; round < 3; ++round) {
    Memory landing = pair.job.rank(1).allocate(MemoryKind::host, kBytes);
    expect_message(pair, landing, true, [&] { return pair.contents(1, landing); });
    landing = Memory();
    pair.job.rank(1).tidy();
    EXPECT_TRUE(pair.job.run_until([&] {
      pair.job.rank(0).tidy();
      return MappingTable::of(pair.job.rank(0).worker().engine())->mapped() == 0;
    }));
  }
  EXPECT_EQ(sent_by(pair, Path::copy_engine), 3u);
}

TEST(MixedChannel, a_canceled_receive_that_its_sender_knows_of_leaves_the_message_to_the_next) {
  MappedPair pair(automatic());
  Memory landing = pair.job.rank(1).allocate(MemoryKind::host, kBytes);
  Operation receive = pair.right.recv(landing);
  pair.job.run(3);
  receive.op().cancel();
  EXPECT_EQ(pair.outcome(receive).status, Status::canceled);
  expect_message(pair, landing, true, [&] { return pair.contents(1, landing); });
}

TEST(MixedChannel, a_message_too_long_for_its_host_landing_is_truncated_at_both_ends) {
  MappedPair pair(automatic());
  Memory source = pair.filled(0, pattern(kBytes, 1));
  Memory landing = pair.job.rank(1).allocate(MemoryKind::host, kBytes - 1);
  Operation receive = pair.right.recv(landing);
  Operation send = pair.left.send(source, Moment::delivered);
  EXPECT_EQ(pair.outcome(receive).status, Status::truncated);
  EXPECT_EQ(pair.outcome(send).status, Status::truncated);
  test::expect_order_goes_on(pair);
}

// The word behind a copy
// ----------------------------------------------------------------------------------------------------------------

/// Whether the receiver heard of a large message before its sender looked again.
bool is_told_by_device() {
  JobOptions options = automatic();
  options.runtime.path = Path::copy_engine;
  MappedPair pair(options);
  const auto sent = pattern(kBytes, 3);
  Memory source = pair.filled(0, sent), landing = pair.job.rank(1).allocate(MemoryKind::emulated, kBytes);
  Operation receive = pair.right.recv(landing);
  pair.job.run(3);
  Operation send = pair.left.send(source, Moment::delivered);
  pair.run(0, 1);  // hands the copy to the device; it does not look after that
  const auto limit = Clock::now() + std::chrono::seconds(5);
  const auto patience = Clock::now() + std::chrono::milliseconds(300);
  const bool wanted = std::getenv("BRANT_COPY_SIGNAL") != nullptr;
  while (!receive.done() && Clock::now() < (wanted ? limit : patience)) pair.run(1, 1);
  const bool told = receive.done();
  EXPECT_TRUE(pair.outcome(receive).ok());
  EXPECT_TRUE(pair.outcome(send).ok());
  EXPECT_TRUE(pair.contents(1, landing) == sent);
  EXPECT_EQ(sent_by(pair, Path::copy_engine), 1u);
  return told;
}

TEST(CopySignal, tells_the_receiver_before_the_sender_looks) {
  const test::ScopedVariable on("BRANT_COPY_SIGNAL", "1");
  EXPECT_TRUE(is_told_by_device());
}

TEST(CopySignal, is_not_set_unless_it_is_asked_for) {
  const test::ScopedVariable off("BRANT_COPY_SIGNAL", nullptr);
  EXPECT_FALSE(is_told_by_device());
}

TEST(CopySignal, windows_of_messages_arrive_whole) {
  const test::ScopedVariable on("BRANT_COPY_SIGNAL", "1");
  MappedPair pair(automatic());
  constexpr unsigned kMessages = 64;
  for (const std::size_t bytes : {1'000ul, 20'000ul}) {
    std::vector<Memory> sources, landings;
    std::vector<std::unique_ptr<Operation>> sends, receives;
    for (unsigned i = 0; i < kMessages; ++i) {
      sources.push_back(pair.filled(0, pattern(bytes, i)));
      landings.push_back(pair.job.rank(1).allocate(MemoryKind::emulated, bytes));
    }
    for (unsigned i = 0; i < kMessages; ++i) receives.emplace_back(new Operation(pair.right.recv(landings[i])));
    for (unsigned i = 0; i < kMessages; ++i) sends.emplace_back(new Operation(pair.left.send(sources[i])));
    for (unsigned i = 0; i < kMessages; ++i) {
      EXPECT_TRUE(pair.outcome(*receives[i]).ok());
      EXPECT_TRUE(pair.outcome(*sends[i]).ok());
      EXPECT_TRUE(pair.contents(1, landings[i]) == pattern(bytes, i)) << i;
    }
  }
}

}  // namespace
}  // namespace brant
