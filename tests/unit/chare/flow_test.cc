// Floods: more messages than may wait, to this process and to another.
#include "support/restless.h"
#include "unit/chare/program.h"

namespace brant {
namespace {

using test::Program;

class Source;

class Sink : public Chare<Sink> {
 public:
  void take(int number) {
    in_order_ = in_order_ && number == count_;
    ++count_;
  }
  void swallow(const std::vector<std::byte>&) { ++count_; }
  int count() { return in_order_ ? count_ : -1; }
  /// Asks itself until it is refused.
  void ask_self(int calls) {
    for (int i = 0; i < calls; ++i) static_cast<void>(this_element().ask<&Sink::count>());
  }
  /// Sends itself more than may wait: nothing can run while it does.
  void flood_self(int calls) {
    for (int i = 0; i < calls; ++i) this_element().call<&Sink::take>(i);
  }

 private:
  int count_ = 0;
  bool in_order_ = true;
};

class Source : public Chare<Source> {
 public:
  void flood(Element<Sink> sink, int calls) {
    for (int i = 0; i < calls; ++i) {
      sink.call<&Sink::take>(i);
      most_ = std::max(most_, chares().counts().waiting);
    }
  }
  std::uint64_t most() { return most_; }

 private:
  std::size_t most_ = 0;
};

constexpr int kCalls = 300'000;

Task<void> flood(Chares& chares, int rank) {
  const Group<Source> sources = create_group<Source>(chares);
  const Group<Sink> sinks = create_group<Sink>(chares);
  co_await sources[0].ask<&Source::flood>(sinks[rank], kCalls);
  int count = 0;
  while (count >= 0 && count < kCalls) count = co_await sinks[rank].ask<&Sink::count>();
  EXPECT_EQ(count, kCalls) << "-1: out of order";
  const std::uint64_t most = co_await sources[0].ask<&Source::most>();
  EXPECT_LE(most, 100'001u);
  EXPECT_GT(chares.counts().held_back + (rank == 0 ? 0u : 1u), 0u);
}

TEST(Flow, a_flood_in_one_process_is_held_back_and_loses_nothing) {
  Program program(test::ranks(1));
  EXPECT_EQ(program.run(flood, 0), 0) << program.failure();
}

Task<void> flood_self(Chares& chares) {
  const Group<Sink> sinks = create_group<Sink>(chares);
  try {
    co_await sinks[0].ask<&Sink::flood_self>(kCalls);
    ADD_FAILURE() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::limit_reached);
    EXPECT_NE(std::string(error.what()).find("Sink[0]::take"), std::string::npos) << error.what();
  }
  const int count = co_await sinks[0].ask<&Sink::count>();
  EXPECT_EQ(count, 100'000) << "what was taken is delivered, in order";
}
TEST(Flow, a_chare_that_floods_itself_gets_an_error_that_says_so) {
  Program program(test::ranks(1));
  EXPECT_EQ(program.run(flood_self), 0) << program.failure();
}

Task<void> flood_self_with_questions(Chares& chares) {
  const Group<Sink> sinks = create_group<Sink>(chares);
  EXPECT_THROW(co_await sinks[0].ask<&Sink::ask_self>(100), Error);
}
TEST(Flow, a_question_that_is_refused_leaves_nothing_behind) {  // the leak checker looks
  ChareOptions options;
  options.undelivered_max = 10;
  Program program(test::ranks(1), options);
  EXPECT_EQ(program.run(flood_self_with_questions), 0) << program.failure();
}

Task<void> flood_self_while_a_task_yields(Chares& chares) {
  const bool never = false;
  Task<void> task = test::yield_until(chares.runtime().worker(), never);
  task.start();
  const Group<Sink> sinks = create_group<Sink>(chares);
  EXPECT_THROW(co_await sinks[0].ask<&Sink::flood_self>(100), Error);
  EXPECT_FALSE(task.finished()) << "it was refused when that had ended";
}
TEST(Flow, a_chare_that_floods_itself_is_refused_also_while_a_task_yields) {
  ChareOptions options;
  options.undelivered_max = 10;
  Program program(test::ranks(1), options);
  EXPECT_EQ(program.run(flood_self_while_a_task_yields), 0) << program.failure();
}
TEST(Flow, a_call_is_held_back_for_its_time_also_while_the_network_is_never_still) {
  ChareOptions options;
  options.undelivered_max = 10;
  options.held_back_max = std::chrono::milliseconds(10);
  Program program(test::ranks(1), options);
  test::RestlessPoller network;
  Engine& engine = program.rank(0).runtime().worker().engine();
  engine.pollers().attach(network);
  EXPECT_EQ(program.run(flood_self_with_questions), 0) << program.failure();
  engine.pollers().detach(network);
  EXPECT_FALSE(network.rests()) << "it was held back as long as anything moved";
}

/// Lets another rank of this thread go on while the first stands in a wait; ends the program if that takes too long.
class OtherRank final : public Poller {
 public:
  explicit OtherRank(Chares& chares) : chares_(chares) {}
  unsigned poll() noexcept override {
    if (Clock::now() >= end_ && !std::exchange(given_up_, true)) chares_.exit(1);
    chares_.progress();
    return 0;
  }

 private:
  Chares& chares_;
  const TimePoint end_ = Clock::now() + test::kRestlessTime;
  bool given_up_ = false;
};

Task<void> flood_after_sleep(Chares& chares) {
  constexpr int calls = 1000;
  const Group<Sink> sinks = create_group<Sink>(chares);
  co_await sleep_for(chares.runtime().worker(), std::chrono::milliseconds(1));
  for (int i = 0; i < calls; ++i) sinks[1].call<&Sink::swallow>(std::vector<std::byte>(32 << 10));
  int count = 0;
  while (count < calls) count = co_await sinks[1].ask<&Sink::count>();
}
TEST(Flow, what_a_task_sends_beyond_the_window_as_it_wakes_goes_out) {
  ChareOptions options;
  options.connect = false;
  options.deadlock_after = std::chrono::milliseconds(0);  // else somebody looks now and then
  test::InProcessJob job(test::ranks(2));
  Chares first(job.rank(0), options), second(job.rank(1), options);
  first.connect();
  second.connect();
  OtherRank other(second);
  Engine& engine = job.rank(0).worker().engine();
  engine.pollers().attach(other);
  EXPECT_EQ(first.run(flood_after_sleep(first)), 0) << "it did not within " << test::kRestlessTime.count() << " s";
  while (!second.ended()) engine.progress().step();
  engine.pollers().detach(other);
}

Task<void> flood_a_little(Chares& chares, int rank) {
  const Group<Source> sources = create_group<Source>(chares);
  const Group<Sink> sinks = create_group<Sink>(chares);
  constexpr int calls = 500;
  co_await sources[0].ask<&Source::flood>(sinks[rank], calls);
  int count = 0;
  while (count >= 0 && count < calls) count = co_await sinks[rank].ask<&Sink::count>();
  EXPECT_EQ(count, calls) << "-1: out of order";
}
TEST(Flow, small_bounds_hold_back_and_refuse_nothing) {
  for (const std::size_t bound : {1u, 7u, 100u, 999u}) {
    ChareOptions options;
    options.undelivered_max = bound;
    Program program(test::ranks(1), options);
    EXPECT_EQ(program.run(flood_a_little, 0), 0) << "undelivered_max " << bound << ": " << program.failure();
  }
}

class Toiler : public Chare<Toiler> {
 public:
  void work() {
    for (const TimePoint end = Clock::now() + std::chrono::milliseconds(1); Clock::now() < end;) {
    }
    ++done;
  }
  Task<void> work_after_reduction() {
    co_await barrier();
    work();
  }
  int done = 0;
};

Task<void> work_long(Chares& chares) {
  const Group<Toiler> toilers = create_group<Toiler>(chares);
  for (int i = 0; i < 40; ++i) toilers[0].call<&Toiler::work>();
  co_await chares.until_exit();
}
TEST(Flow, a_round_ends_after_one_or_two_long_messages) {
  Program program(test::ranks(1));
  Chares& chares = program.rank(0);
  chares.start(work_long(chares));
  int most = 0;
  for (std::uint64_t before = 0; before < 40;) {
    chares.progress();
    most = std::max(most, static_cast<int>(chares.counts().calls_run - before));
    before = chares.counts().calls_run;
  }
  EXPECT_LE(most, 2) << "messages of a millisecond between two looks at the network";
  chares.exit();
  EXPECT_EQ(program.run_on(), 0) << program.failure();
}

/// Starts `main`, which lets each of 40 chares work for a millisecond, and expects at most two of them in a round.
void expect_spread(Task<void> (*main)(Chares&, Array<Toiler>&)) {
  Program program(test::ranks(1));
  Chares& chares = program.rank(0);
  Array<Toiler> toilers;
  chares.start(main(chares, toilers));
  const auto done = [&] {
    int sum = 0;
    for (int i = 0; i < 40; ++i) {
      const Toiler* toiler = toilers[i].local();
      sum += toiler != nullptr ? toiler->done : 0;
    }
    return sum;
  };
  int before = 0;
  for (int now = 0; now < 40; before = now) {
    chares.progress();
    now = done();
    ASSERT_LE(now - before, 2) << "calls of a millisecond between two looks at the network";
  }
  chares.exit();
  EXPECT_EQ(program.run_on(), 0) << program.failure();
}

TEST(Flow, a_round_ends_within_a_broadcast_whose_members_work_long) {
  expect_spread([](Chares& chares, Array<Toiler>& toilers) -> Task<void> {
    toilers = create_array<Toiler>(chares, 40, Placement::block());
    toilers.call<&Toiler::work>();
    co_await chares.until_exit();
  });
}

TEST(Flow, a_round_ends_while_those_who_awaited_a_reduction_are_resumed) {
  expect_spread([](Chares& chares, Array<Toiler>& toilers) -> Task<void> {
    toilers = create_array<Toiler>(chares, 40, Placement::block());
    toilers.call<&Toiler::work_after_reduction>();
    co_await chares.until_exit();
  });
}

}  // namespace
}  // namespace brant
