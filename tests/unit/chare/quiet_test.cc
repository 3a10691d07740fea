// Quiescence, and the report of programs that cannot go on.
#include "brant/core/timer.h"
#include "models/chare/core.h"
#include "support/restless.h"
#include "unit/chare/program.h"

namespace brant {
namespace {

using test::Program;

/// Messages that make messages: nobody counts them but the runtime.
class Node : public Chare<Node> {
 public:
  void spread(int depth) {
    ++hits_;
    if (depth == 0) return;
    const int here = index()[0];
    for (int i = 1; i <= 2; ++i) this_array()[(here * 3 + i * depth) % 11].call<&Node::spread>(depth - 1);
  }
  Task<void> spread_late(int depth) {
    co_await this_element().ask<&Node::ping>();
    spread(depth);
  }
  void ping() {}
  int hits() { return hits_; }
  void face(int, std::string_view) {}
  Task<void> wait_for_face(int step) { co_await when<&Node::face>(step); }
  Task<void> wait_for_all() { co_await barrier(); }
  Task<void> wait_for_promise() { co_await never_.future(); }
  Task<void> nap() { co_await sleep_for(chares().runtime().worker(), std::chrono::milliseconds(60)); }
  Task<void> hear() {
    Channel channel = Channel::open(chares().runtime(), Rank{1 - chares().rank().value}, ChannelId{9});
    std::vector<int> in(4);
    static_cast<void>(co_await channel.recv(std::span<int>(in)));
  }

 private:
  int hits_ = 0;
  Promise<> never_;
};

Task<void> settle(Chares& chares) {
  const auto nodes = create_array<Node>(chares, 11, Placement::round_robin());
  for (int round = 1; round <= 3; ++round) {
    nodes[5].call<&Node::spread>(9);
    nodes[3].call<&Node::spread_late>(8);
    co_await chares.quiescence();
    int hits = 0;
    for (int i = 0; i < 11; ++i) hits += co_await nodes[i].ask<&Node::hits>();
    EXPECT_EQ(hits, round * (1023 + 511)) << "all of it had run";
  }
  bool told = false;
  chares.on_quiescence(Callback<>::function(chares, [&told] { told = true; }));
  co_await chares.quiescence();
  co_await nodes[1].ask<&Node::ping>();
  EXPECT_TRUE(told);
}
TEST(Quiescence, comes_when_everything_has_run) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Program program(test::reordering(seed, 1 + static_cast<int>(seed % 6)));
    EXPECT_EQ(program.run(settle), 0) << "seed " << seed << ": " << program.failure();
  }
}
Task<void> be_quiet(Chares& chares) { co_await chares.quiescence(); }
TEST(Quiescence, waits_for_work_that_only_the_program_knows) {
  bool busy = true;
  ChareOptions options;
  options.has_other_work = [&busy] { return busy; };
  Program program(test::ranks(2), options);
  program.rank(0).start(be_quiet(program.rank(0)));
  EXPECT_EQ(program.run_on(20'000), -1) << "the program said that it has more to do";
  busy = false;
  EXPECT_EQ(program.run_on(), 0);
}
TEST(Quiescence, comes_over_a_faulty_wire) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Program program(test::faulty(seed, 4));
    EXPECT_EQ(program.run(settle), 0) << "seed " << seed << ": " << program.failure();
  }
}

Task<void> settle_with_data(Chares& chares) {
  ++chares.core().activity().data_started;
  auto quiet = chares.quiescence();
  co_await sleep_for(chares.runtime().worker(), std::chrono::milliseconds(20));
  EXPECT_FALSE(quiet.ready()) << "data is in flight";
  ++chares.core().activity().data_ended;
  co_await quiet;
}
TEST(Quiescence, waits_for_data_in_flight) {
  Program program(test::ranks(2));
  program.rank(0).start(settle_with_data(program.rank(0)));
  EXPECT_EQ(program.run_on(50'000'000), 0) << program.failure();  // rounds without work are short
}

Task<void> settle_while_a_task_yields(Chares& chares) {
  const bool never = false;
  Task<void> task = test::yield_until(chares.runtime().worker(), never);
  task.start();
  co_await chares.quiescence();
  EXPECT_FALSE(task.finished()) << "it came when that had ended";
}
TEST(Quiescence, comes_while_a_task_yields) {
  test::InProcessJob job(test::ranks(1));
  Chares chares(job.rank(0));
  EXPECT_EQ(chares.run(settle_while_a_task_yields(chares)), 0) << chares.failure();
}

ChareOptions impatient() {
  ChareOptions options;
  options.deadlock_after = std::chrono::milliseconds(20);
  return options;
}
bool contains(const std::string& text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (text.find(part) == std::string::npos) return false;
  }
  return true;
}

/// Rounds without work are short: 20 ms are many.
template <typename Main>
int run_long(Program& program, Main main) {
  program.rank(0).start(main(program.rank(0)));
  return program.run_on(50'000'000);
}

Task<void> wrong_step(Chares& chares) {
  const auto nodes = create_array<Node>(chares, 11, Placement::round_robin());
  auto done = nodes[4].ask<&Node::wait_for_face>(5);
  nodes[4].call<&Node::face>(6, "too late");
  co_await done;
}
TEST(Deadlock, a_when_that_nobody_serves_is_named) {
  for (const int ranks : {1, 3}) {
    Program program(test::ranks(ranks), impatient());
    EXPECT_EQ(run_long(program, wrong_step), 1);
    EXPECT_TRUE(contains(
        program.failure(),
        {"deadlock: nothing can run", "the main task on rank 0",
         "Node[4]::wait_for_face on rank " + std::to_string(4 % ranks) + " waits for when face(5)",
         "it keeps 1 calls of face that do not match", "future of brant::{anonymous}::Node[4]", "deadlock_after"}))
        << program.failure();
    for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(program.rank(rank).exit_code(), 1);
  }
}

Task<void> incomplete(Chares& chares) {
  const auto nodes = create_array<Node>(chares, 5, Placement::round_robin());
  std::vector<Future<void>> done;
  for (const int i : {0, 1, 3, 4}) done.push_back(nodes[i].ask<&Node::wait_for_all>());
  for (auto& future : done) co_await future;
}
TEST(Deadlock, a_reduction_says_who_has_not_contributed) {
  Program program(test::ranks(3), impatient());
  EXPECT_EQ(run_long(program, incomplete), 1);
  EXPECT_TRUE(contains(program.failure(), {"reduction 0 of", "waits for brant::{anonymous}::Node[2] to contribute",
                                           "Node[0]::wait_for_all on rank 0 waits for a reply, a reduction"}))
      << program.failure();
}

Task<void> never(Chares& chares) {
  const auto nodes = create_array<Node>(chares, 3, Placement::round_robin());
  const auto more = create_sparse<Node>(chares, Placement::round_robin());
  nodes[1].call<&Node::wait_for_promise>();
  nodes[2].call<&Node::face>(1, "kept");
  more[7].call<&Node::ping>();
  co_await chares.until_exit();
}
TEST(Deadlock, futures_kept_calls_and_elements_that_never_were_are_named) {
  Program program(test::ranks(3), impatient());
  EXPECT_EQ(run_long(program, never), 1);
  EXPECT_TRUE(
      contains(program.failure(), {"Node[1]::wait_for_promise on rank 1", "Node[2] on rank 2 keeps 1 calls of face",
                                   "undelivered: brant::{anonymous}::Node[7]::ping on rank 1, which was never"}))
      << program.failure();
}

Task<void> asleep(Chares& chares) {
  const auto nodes = create_array<Node>(chares, 3, Placement::round_robin());
  co_await nodes[1].ask<&Node::nap>();
  co_await nodes[0].ask<&Node::nap>();
}
TEST(Deadlock, timers_are_none) {
  ChareOptions options = impatient();
  options.deadlock_after = std::chrono::milliseconds(5);
  Program program(test::ranks(2), options);
  EXPECT_EQ(run_long(program, asleep), 0) << program.failure();
}

Task<void> hearing(Chares& chares) {
  const auto nodes = create_group<Node>(chares);
  nodes[1].call<&Node::hear>();
  co_await sleep_for(chares.runtime().worker(), std::chrono::milliseconds(40));
  Channel channel = Channel::open(chares.runtime(), Rank{1}, ChannelId{9});
  const std::vector<int> out(4);
  static_cast<void>(co_await channel.send(std::span<const int>(out)));
  co_await nodes[1].ask<&Node::ping>();
}
TEST(Deadlock, operations_with_the_network_are_none) {
  ChareOptions options = impatient();
  options.deadlock_after = std::chrono::milliseconds(5);
  Program program(test::ranks(2), options);
  EXPECT_EQ(run_long(program, hearing), 0) << program.failure();
}

TEST(Deadlock, the_report_can_be_switched_off) {
  ChareOptions options;
  options.deadlock_after = std::chrono::milliseconds(0);
  Program program(test::ranks(2), options);
  EXPECT_EQ(program.run(never), -1) << "still waiting";
}

Task<void> many_waiters(Chares& chares) {
  const auto nodes = create_array<Node>(chares, 500, Placement::round_robin());
  nodes.call<&Node::wait_for_face>(1);
  co_await chares.until_exit();
}
TEST(Deadlock, the_report_is_bounded) {
  Program program(test::ranks(4), impatient());
  EXPECT_EQ(run_long(program, many_waiters), 1);
  EXPECT_TRUE(contains(program.failure(), {"waits for when face(1)", "more on rank 3"})) << program.failure();
  EXPECT_LT(program.failure().size(), 20'000u);
}

}  // namespace
}  // namespace brant
