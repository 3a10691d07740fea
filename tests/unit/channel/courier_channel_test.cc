// What couriers do to channels between processes that map each other's device memory.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/channel.h"
#include "core/engine.h"
#include "ops/channel/table.h"
#include "support/environment.h"
#include "unit/channel/linked_pair.h"

namespace brant {
namespace {

using test::MappedPair;
using test::pattern;

class CourierChannel : public testing::Test {
 protected:
  void SetUp() override {
    if (test::small_mapped_path() != Path::courier) GTEST_SKIP() << "needs couriers: BRANT_COURIER=1";
  }
  static std::uint64_t carried_by_courier(MappedPair& pair) {
    return pair.job.rank(0).worker().engine().counters().path(Path::courier).sends.read();
  }
  static bool courier_carries(MappedPair& pair) {
    return pair.job.rank(0).worker().engine().service<Mover>().courier_carries();
  }
  /// Lets one rank alone make progress until something is so. False: it took too long.
  static bool run_until(MappedPair& pair, int rank, const std::function<bool()>& so,
                        std::chrono::nanoseconds patience = std::chrono::seconds(5)) {
    const auto limit = Clock::now() + patience;
    while (!so() && Clock::now() < limit) pair.run(rank, 1);
    return so();
  }
};

TEST_F(CourierChannel, tells_the_receiver_before_the_sender_looks) {
  MappedPair pair;
  const auto sent = pattern(500, 3);
  Memory source = pair.filled(0, sent);
  Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, sent.size());
  bool told = false;
  // It comes when small copies follow each other, and on a busy machine some time after that.
  for (const auto limit = Clock::now() + std::chrono::seconds(20); !told && Clock::now() < limit;) {
    Operation receive = pair.right.recv(landing);
    pair.job.run(3);
    Operation send = pair.left.send(source);
    if (courier_carries(pair)) {
      // A courier may leave with the order undone: to launch it again is the sender's, who does not look here.
      told = run_until(pair, 1, [&] { return receive.done(); }, std::chrono::milliseconds(500));
    }
    if (told) {
      EXPECT_FALSE(send.done()) << "its side has not looked";
      EXPECT_EQ(receive.result().bytes, sent.size());
      EXPECT_EQ(pair.contents(1, landing), sent);
    }
    EXPECT_TRUE(pair.outcome(receive).ok());
    EXPECT_TRUE(pair.outcome(send).ok());
  }
  EXPECT_TRUE(told);
}

/// Couriers come late and leave early there, with orders half done: some are taken back.
TEST_F(CourierChannel, windows_of_messages_arrive_whole_on_a_busy_machine) {
  constexpr std::size_t kMessages = 64;
  constexpr std::size_t kWords = 8;
  std::vector<std::jthread> others;
  for (int i = 0; i < 4; ++i) {
    others.emplace_back([](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
      }
    });
  }
  MappedPair pair;
  Memory source = pair.job.rank(0).allocate(MemoryKind::emulated, kMessages * kWords * 8);
  Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, kMessages * kWords * 8);
  std::vector<std::uint64_t> sent(kMessages * kWords), got(sent.size());
  for (std::uint64_t window = 0; window < 100; ++window) {
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = window * sent.size() + i;
    pair.job.rank(0).copy(source, std::as_bytes(std::span(sent)));
    std::vector<std::unique_ptr<Operation>> operations;
    for (std::size_t i = 0; i < kMessages; ++i) {
      operations.emplace_back(new Operation(pair.right.recv(landing.part(i * kWords * 8, kWords * 8))));
    }
    pair.job.run(1);
    for (std::size_t i = 0; i < kMessages; ++i) {
      operations.emplace_back(new Operation(pair.left.send(source.part(i * kWords * 8, kWords * 8))));
    }
    for (const auto& operation : operations) ASSERT_TRUE(pair.outcome(*operation).ok()) << "window " << window;
    pair.job.rank(1).copy(std::as_writable_bytes(std::span(got)), landing);
    ASSERT_EQ(got, sent) << "window " << window;
  }
}

/// The sender asks where its message goes while word of that is on its way, and the message comes before the question:
/// that one stands in the ring behind more records than are looked at in one progress.
TEST_F(CourierChannel, forgets_a_question_that_comes_behind_its_message) {
  constexpr int kOthers = 100;
  // The courier is to be there behind all those, on a slow machine too.
  const test::ScopedVariable idle("BRANT_COURIER_IDLE_US", "20000");
  MappedPair pair;
  Channel left = Channel::open(pair.job.rank(0), Rank{1}, ChannelId{8});
  Channel right = Channel::open(pair.job.rank(1), Rank{0}, ChannelId{8});
  const auto sent = pattern(500, 3);
  Memory source = pair.filled(0, sent);
  Memory landing = pair.job.rank(1).allocate(MemoryKind::emulated, sent.size());
  const auto& kept = pair.job.rank(1).worker().engine().service<ChannelTable>().pools().arrivals;
  bool overtaken = false;
  for (int round = 0; round < 2000 && !overtaken; ++round) {
    int value = round;
    std::vector<std::unique_ptr<Operation>> others;
    for (int i = 0; i < kOthers; ++i)
      others.emplace_back(new Operation(left.send(ConstBuffer(&value, sizeof(value), MemoryKind::host))));
    const std::uint64_t before = carried_by_courier(pair);
    Operation send = pair.left.send(source);
    Operation receive = pair.right.recv(landing);
    ASSERT_TRUE(run_until(pair, 0, [&] { return send.done(); }));
    pair.run(1, 1);
    overtaken = carried_by_courier(pair) != before && receive.done();
    ASSERT_TRUE(pair.outcome(receive).ok());
    for (int i = 0; i < kOthers; ++i)
      ASSERT_TRUE(pair.outcome(right.recv(Buffer(&value, sizeof(value), MemoryKind::host))).ok());
    ASSERT_EQ(kept.lent(), 0u) << "round " << round;
  }
  EXPECT_TRUE(overtaken);
}

}  // namespace
}  // namespace brant
