// What an operation costs in steady state, counted instruction by instruction: the table of ARCHITECTURE.md, and what
// the design demands of it. Runs as two ranks of one host; rank 0 counts. While it does, the other one has done its
// part and waits, so that the counts are the same on each run.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/chare.h"
#include "support/job_runtime.h"
#include "support/stepped_cost.h"

namespace brant {
namespace {

using test::OperationCost;

constexpr int kWarmUp = 100, kTurns = 131;
constexpr std::size_t kLarge = std::size_t{64} << 10;

/// What the design demands of a post: nothing that makes others wait, one virtual call, few files up to there.
struct Demand {
  std::uint64_t pointer_calls_max = 1;
  std::size_t files_max = 4;
};

Worker& worker() { return test::job().worker(); }
bool counts_here() { return test::job().rank().value == 0; }
Rank other() { return Rank{1 - test::job().rank().value}; }

void progress_until(const std::function<bool()>& done) {
  const TimePoint end = Clock::now() + std::chrono::seconds(20);
  while (!done()) {
    worker().progress();
    if (Clock::now() > end) throw Error(Status::timed_out, "the other rank does not come");
  }
}

/// Turns of the two ranks, told by words in memory that both map: nothing of brant's runs while one waits.
class Turns {
 public:
  Turns()
      : memory_(test::job().allocate(MemoryKind::host, 4 * kLarge)),
        segment_(expose(test::job(), memory_)),
        channel_(Channel::open(test::job(), other(), ChannelId{1})) {
    std::fill_n(memory_.as<std::uint64_t>(), 2, 0);
    SegmentTicket own = segment_.ticket(), ticket;
    Operation receive = channel_.recv(Buffer(&ticket, sizeof(ticket)));
    Operation send = channel_.send(ConstBuffer(&own, sizeof(own)));
    test::job().wait_for(std::chrono::seconds(20), receive, send).or_throw("no ticket came");
    there_ = RemoteSegment(test::job(), other(), ticket);
  }
  /// Words can be told so.
  [[nodiscard]] bool mapped() const { return *there_.path_of(MemoryKind::host, 8, RmaDirection::put) == Path::shm; }
  /// Of the other end, as large.
  [[nodiscard]] RemoteSegment& there() { return there_; }
  /// For the operations. Of the same allocation as the words: what an address is costs more with one that was not the
  /// last that was asked for.
  [[nodiscard]] Buffer buffer(std::size_t bytes) { return memory_.part(kLarge, bytes); }

  void say() {
    ++memory_.as<std::uint64_t>()[1];
    Op op;
    if (there_.post_put(0, memory_.part(8, 8), op) != Status::ok)
      throw Error(Status::io_error, "a word could not be told");
  }
  void hear() {
    ++heard_;
    const TimePoint end = Clock::now() + std::chrono::seconds(20);
    const std::atomic_ref<std::uint64_t> word(*memory_.as<std::uint64_t>());
    while (word.load(std::memory_order_acquire) < heard_) {
      std::this_thread::yield();
      if (Clock::now() > end) throw Error(Status::timed_out, "the other rank does not take its turn");
    }
  }
  void meet() {
    say();
    hear();
  }

 private:
  Memory memory_;
  Segment segment_;
  Channel channel_;
  RemoteSegment there_;
  std::uint64_t heard_ = 0;
};

/// What was counted of one operation.
struct Row {
  std::string name;
  std::vector<OperationCost> turns;
  std::set<std::string> files;

  /// Now and then one does more: it tells how far it has come, or looks at the network. Most are alike.
  [[nodiscard]] OperationCost typical() const {
    std::vector<OperationCost> sorted = turns;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end(),
                     [](const auto& a, const auto& b) { return a.instructions < b.instructions; });
    return *middle;
  }
  [[nodiscard]] std::uint64_t most(std::uint64_t OperationCost::* column) const {
    std::uint64_t most = 0;
    for (const OperationCost& cost : turns) most = std::max(most, cost.*column);
    return most;
  }
};

class OperationCosts : public testing::Test {
 protected:
  void SetUp() override {
#ifndef NDEBUG
    GTEST_SKIP() << "built for debugging";
#endif
    if (!turns_.mapped()) GTEST_SKIP() << "the ranks cannot map each other's memory";
  }

  /// Does it, and counts it once it is warm.
  template <typename Body>
  void count(Row& row, int turn, Body&& body) {
    if (!counts_here() || turn < kWarmUp) return body();
    row.turns.push_back(test::cost_of(body));
    if (turn == kTurns - 1) row.files = test::files_on_the_way();
  }
  /// A row of the table.
  static void print(const Row& row, bool with_files) {
    const OperationCost cost = row.typical();
    std::printf("| %s | %zu | %zu | %zu | %zu | %zu | %zu | %zu | %zu | %zu | %s |\n", row.name.c_str(),
                cost.instructions, cost.calls, cost.pointer_calls, cost.locked, cost.system_calls, cost.allocations,
                cost.locks, cost.copies, cost.copied_bytes,
                with_files && !row.files.empty() ? std::to_string(row.files.size()).c_str() : "");
    std::fflush(stdout);
  }
  void expect_post(const Row& row, const Demand& demand = {}) {
    if (!counts_here()) return;
    print(row, true);
    EXPECT_EQ(row.most(&OperationCost::allocations), 0u) << row.name;
    EXPECT_EQ(row.most(&OperationCost::locks), 0u) << row.name;
    EXPECT_EQ(row.most(&OperationCost::locked), 0u) << row.name;
    EXPECT_EQ(row.most(&OperationCost::system_calls), 0u) << row.name;
    EXPECT_LE(row.typical().pointer_calls, demand.pointer_calls_max) << row.name;
    EXPECT_LE(row.files.size(), demand.files_max) << row.name << ": " << testing::PrintToString(row.files);
  }
  /// Some look at the clock, at the network and at the other processes as well, which are system calls.
  void expect_progress(const Row& row) {
    if (!counts_here()) return;
    print(row, false);
    EXPECT_EQ(row.most(&OperationCost::allocations), 0u) << row.name;
    EXPECT_EQ(row.most(&OperationCost::locks), 0u) << row.name;
    EXPECT_EQ(row.typical().locked, 0u) << row.name;
    EXPECT_EQ(row.typical().system_calls, 0u) << row.name;
  }

  Turns turns_;
};

/// Until nothing is left to do, the network looked at.
void settle() {
  for (int idle = 0; idle < 8;) idle = worker().progress() == 0 ? idle + 1 : 0;
}

std::string text_of(std::size_t bytes) {
  return bytes < 1024 ? std::to_string(bytes) + " B" : std::to_string(bytes >> 10) + " KB";
}

TEST_F(OperationCosts, of_messages_that_are_sent) {
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{1024}, kLarge}) {
    Channel channel = Channel::open(test::job(), other(), ChannelId{static_cast<std::uint32_t>(bytes)});
    const Buffer buffer = turns_.buffer(bytes);
    Row send{"send of " + text_of(bytes), {}, {}}, end{"progress that ends the send", {}, {}};
    for (int turn = 0; turn < kTurns; ++turn) {
      if (counts_here()) {
        turns_.hear();
        settle();
        Op op;
        Flag flag;
        Status posted = Status::ok;
        count(send, turn, [&] {
          op.source_free = flag.sink();
          posted = channel.post_send(buffer, op);
        });
        turns_.meet();
        ASSERT_EQ(posted, bytes == kLarge ? Status::in_progress : Status::ok);
        if (bytes == kLarge) {
          count(end, turn, [] { worker().progress(); });
          ASSERT_TRUE(flag.done);
        }
      } else {
        Operation receive = channel.recv(buffer);
        turns_.meet();
        progress_until([&] { return receive.done(); });
        turns_.say();
      }
    }
    // Of a large one the device says where others can map it.
    expect_post(send, bytes == kLarge ? Demand{2} : Demand{});
    if (bytes == kLarge) expect_progress(end);
    turns_.meet();
  }
}

TEST_F(OperationCosts, of_messages_from_several_allocations_in_turn) {
  std::vector<Memory> sources;
  sources.reserve(8);
  for (int i = 0; i < 8; ++i) sources.push_back(test::job().allocate(MemoryKind::host, kLarge));
  Channel channel = Channel::open(test::job(), other(), ChannelId{3});
  Row send{"send of 8 B of another allocation than the last", {}, {}};
  for (int turn = 0; turn < kTurns; ++turn) {
    if (counts_here()) {
      turns_.hear();
      settle();
      const Buffer source = sources[static_cast<std::size_t>(turn) % sources.size()].part(0, 8);
      Op op;
      count(send, turn, [&] { static_cast<void>(channel.post_send(source, op)); });
      ASSERT_TRUE(op.result.ok() && !op.pending());
      turns_.say();
    } else {
      Operation receive = channel.recv(turns_.buffer(8));
      turns_.meet();
      progress_until([&] { return receive.done(); });
    }
  }
  expect_post(send);
  turns_.meet();
}

TEST_F(OperationCosts, of_messages_that_are_received) {
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{1024}, kLarge}) {
    Channel channel = Channel::open(test::job(), other(), ChannelId{static_cast<std::uint32_t>(bytes)});
    const Buffer buffer = turns_.buffer(bytes);
    Row post{"receive of " + text_of(bytes), {}, {}}, land{"progress that lands it", {}, {}};
    for (int turn = 0; turn < kTurns; ++turn) {
      if (counts_here()) {
        Op op;
        Flag flag;
        Status posted = Status::ok;
        count(post, turn, [&] {
          op.delivered = flag.sink();
          posted = channel.post_recv(buffer, op);
        });
        ASSERT_EQ(posted, Status::in_progress);
        settle();
        turns_.meet();
        count(land, turn, [] { worker().progress(); });
        ASSERT_TRUE(flag.done);
        turns_.say();
      } else {
        turns_.hear();
        Operation sent = channel.send(buffer);
        turns_.meet();
        progress_until([&] { return sent.done(); });
        settle();
      }
    }
    expect_post(post);
    expect_progress(land);
    turns_.meet();
  }
}

TEST_F(OperationCosts, of_messages_that_come_before_their_receive) {
  const Buffer buffer = turns_.buffer(8);
  Channel channel = Channel::open(test::job(), other(), ChannelId{2});
  Row keep{"progress that keeps 8 B that came early", {}, {}}, find{"receive that finds it", {}, {}};
  for (int turn = 0; turn < kTurns; ++turn) {
    if (counts_here()) {
      settle();
      turns_.meet();
      count(keep, turn, [] { worker().progress(); });
      Op op;
      Flag flag;
      Status posted = Status::ok;
      count(find, turn, [&] {
        op.delivered = flag.sink();
        posted = channel.post_recv(buffer, op);
      });
      ASSERT_EQ(posted, Status::ok);
    } else {
      turns_.hear();
      Operation sent = channel.send(buffer);
      ASSERT_TRUE(sent.done());
      turns_.say();
      settle();
    }
  }
  expect_progress(keep);
  expect_post(find);
  turns_.meet();
}

TEST_F(OperationCosts, of_puts_and_of_nothing) {
  Row put{"put of 8 B, like the last one", {}, {}}, idle{"progress that finds nothing", {}, {}};
  for (int turn = 0; turn < kTurns; ++turn) {
    Op op;
    Flag flag;
    Status posted = Status::ok;
    count(put, turn, [&] {
      op.delivered = flag.sink();
      posted = turns_.there().post_put(kLarge, turns_.buffer(8), op);
    });
    ASSERT_EQ(posted, Status::ok);
  }
  for (int turn = 0; turn < kTurns; ++turn) count(idle, turn, [] { worker().progress(); });
  expect_post(put);
  expect_progress(idle);
  turns_.meet();
}

class Taker : public Chare<Taker> {
 public:
  Taker() { here = this; }
  void know(Element<Taker> partner) { partner_ = std::move(partner); }
  void take(std::uint64_t value) { taken += value; }

  static inline Taker* here = nullptr;
  static inline std::uint64_t taken = 0;

  Element<Taker> partner_;
};

TEST_F(OperationCosts, of_calls) {
  Chares chares(test::job());
  const auto step_until = [&](const auto& done) {
    const TimePoint end = Clock::now() + std::chrono::seconds(20);
    while (!done() && Clock::now() < end) chares.progress();
    if (!done()) throw Error(Status::timed_out, "the chares do not go on");
  };
  const auto set_up = [](Chares& all, Future<> finished) -> Task<void> {
    const auto takers = create_array<Taker>(all, 2, Placement::round_robin());
    takers[0].call<&Taker::know>(takers[1]);
    takers[1].call<&Taker::know>(takers[0]);
    co_await finished;
  };
  Promise<> finished;
  chares.start(set_up(chares, finished.future()));
  step_until([] { return Taker::here != nullptr && Taker::here->partner_ != Element<Taker>(); });
  const Element<Taker> partner = Taker::here->partner_;
  const auto settle_all = [&] {
    for (int idle = 0; idle < 8;) idle = chares.progress() == 0 ? idle + 1 : 0;
  };
  Row call{"call with 8 B", {}, {}}, run{"progress that runs one", {}, {}};
  for (int turn = 0; turn < 2 * kTurns; ++turn) {
    settle_all();
    turns_.meet();
    const std::uint64_t before = Taker::taken;
    if ((turn < kTurns) == counts_here()) {
      count(call, turn, [&] { partner.call<&Taker::take>(std::uint64_t{1}); });
      turns_.meet();
    } else {
      turns_.meet();
      count(run, turn - kTurns, [&] { chares.progress(); });
      ASSERT_EQ(Taker::taken, before + 1);
    }
  }
  expect_post(call);
  expect_progress(run);
  if (counts_here()) finished.deliver();
  step_until([&] { return chares.ended(); });
  EXPECT_EQ(chares.exit_code(), 0) << chares.failure();
}

}  // namespace
}  // namespace brant
