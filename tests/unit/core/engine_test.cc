#include "core/engine.h"

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "brant/core/future.h"
#include "brant/core/timer.h"
#include "brant/ops/channel.h"
#include "port/wire/faulty/faulty.h"
#include "support/in_process_job.h"
#include "support/restless.h"

namespace brant {
namespace {

using test::InProcessJob;
using test::JobOptions;

TEST(Wait, ends_in_time_while_the_network_is_never_still) {
  InProcessJob job(test::ranks(1));
  Worker& worker = job.rank(0).worker();
  test::RestlessPoller network;
  worker.engine().pollers().attach(network);
  EXPECT_EQ(worker.wait_until([&] { return network.rests(); }, std::chrono::milliseconds(5)), Status::timed_out);
  worker.engine().pollers().detach(network);
}

TEST(Wait, ends_in_time_while_a_task_yields) {
  InProcessJob job(test::ranks(1));
  Worker& worker = job.rank(0).worker();
  bool over = false;
  Task<void> task = test::yield_until(worker, over);
  task.start();
  EXPECT_EQ(worker.wait_until([&] { return task.finished(); }, std::chrono::milliseconds(5)), Status::timed_out);
}

class StallListener final : public Service {
 public:
  explicit StallListener(Engine&) {}
  bool stalled(std::chrono::nanoseconds, bool) noexcept override { return told = true; }
  bool told = false;
};

TEST(Wait, says_that_nothing_happens_while_a_task_yields) {
  JobOptions options = test::ranks(1);
  options.runtime.stall_report = std::chrono::milliseconds(2);
  InProcessJob job(options);
  Worker& worker = job.rank(0).worker();
  const auto& listener = worker.engine().service<StallListener>();
  Task<void> task = test::yield_until(worker, listener.told);
  task.start();
  EXPECT_EQ(worker.wait_until([&] { return task.finished(); }), Status::ok);
  EXPECT_TRUE(listener.told);
}

TEST(Runtime, ends_while_the_network_is_never_still) {
  test::RestlessPoller network;
  int fences = 0;
  JobOptions options;
  options.fence = [&] { return ++fences < 10 ? Status::ok : fences < 13 ? Status::timed_out : Status::ok; };
  {
    InProcessJob job(options);
    ASSERT_LT(fences, 10);
    fences = 9;
    job.rank(0).worker().engine().pollers().attach(network);
  }
  EXPECT_FALSE(network.rests()) << "its end waited until nothing moved any more";
}

TEST(Progress, of_a_task_that_only_yields_is_no_event) {
  InProcessJob job(test::ranks(1));
  Worker& worker = job.rank(0).worker();
  bool over = false;
  Task<void> task = test::yield_until(worker, over);
  task.start();
  EXPECT_EQ(worker.progress(), 0u);
  over = true;  // NOLINT(clang-analyzer-deadcode.DeadStores): the task reads it
  worker.progress();
  EXPECT_TRUE(task.finished());
}

/// A call of user code that takes a millisecond. Counts those that one round makes.
struct Toil {
  void run() noexcept {
    for (const TimePoint end = Clock::now() + std::chrono::milliseconds(1); Clock::now() < end;) {
    }
    ++done;
  }
  /// All of `count` are made, and at most two in one progress of `engine`.
  void expect_spread(Engine& engine, int count) {
    for (int before = 0; done < count; before = done) {
      engine.progress().step();
      ASSERT_LE(done - before, 2) << "calls of a millisecond between two looks at the network";
    }
  }
  int done = 0;
};

TEST(Progress, fires_one_or_two_long_completions) {
  InProcessJob job(test::ranks(1));
  Engine& engine = job.rank(0).worker().engine();
  Toil toil;
  std::array<Op, 20> ops;
  for (Op& op : ops) {
    op.delivered = {[](void* self, const OpResult&) noexcept { static_cast<Toil*>(self)->run(); }, &toil};
    engine.completions().complete(op, {});
  }
  toil.expect_spread(engine, 20);
}

TEST(Progress, runs_one_or_two_long_functions_that_were_posted) {
  InProcessJob job(test::ranks(1));
  Engine& engine = job.rank(0).worker().engine();
  Toil toil;
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(engine.commands().post([](void* self) noexcept { static_cast<Toil*>(self)->run(); }, &toil), Status::ok);
  }
  toil.expect_spread(engine, 20);
}

TEST(Progress, fires_one_or_two_long_timers) {
  struct Ring : Timer {
    Toil* toil = nullptr;
  };
  InProcessJob job(test::ranks(1));
  Engine& engine = job.rank(0).worker().engine();
  Toil toil;
  std::array<Ring, 20> rings;
  for (Ring& ring : rings) {
    ring.toil = &toil;
    ring.fire = [](Timer& self) noexcept { static_cast<Ring&>(self).toil->run(); };
    engine.timers().set(ring, Clock::now());
  }
  toil.expect_spread(engine, 20);
}

TEST(Progress, looks_at_the_network_beside_links_once_user_code_took_long) {
  constexpr unsigned unused_id = HeldMessages::kIds - 1;
  JobOptions options;
  options.links = true;
  InProcessJob job(options);
  Engine &here = job.rank(0).worker().engine(), &there = job.rank(1).worker().engine();
  int arrived = 0;
  here.held_messages().claim(
      unused_id, [](void* self, port::AmMessage&) noexcept { ++*static_cast<int*>(self); }, &arrived);
  const std::byte header[8] = {};
  for (unsigned phase = 0; phase < Progress::kWireTurn; ++phase) {
    for (unsigned i = 0; i < phase; ++i) here.progress().step();
    const int before = arrived;
    port::WireOp op;
    ASSERT_EQ(there.wire().am_send(there.peers().connect(Rank{0}).endpoint, unused_id, header, {}, op), Status::ok);
    Op long_one;
    long_one.delivered = {
        [](void*, const OpResult&) noexcept { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr};
    here.completions().complete(long_one, {});
    here.progress().step();
    here.progress().step();
    EXPECT_EQ(arrived, before + 1) << phase;
  }
}

TEST(Yield, lets_another_task_and_the_network_go_on) {
  InProcessJob job;
  Worker& worker = job.rank(0).worker();
  Channel left = Channel::open(job.rank(0), Rank{1}, ChannelId{1});
  Channel right = Channel::open(job.rank(1), Rank{0}, ChannelId{1});
  int value = 7, got = 0;
  bool received = false;
  std::string turns;
  const auto takes_turns = [&](char name) -> Task<void> {
    for (int turn = 0; turn < 3; ++turn) {
      turns += name;
      co_await yield(worker);
    }
    while (!received) co_await yield(worker);  // what it waits for comes only if the network moves
  };
  const auto receives = [&]() -> Task<void> {
    EXPECT_TRUE((co_await left.recv(Buffer(&got, sizeof(got)))).ok());
    received = true;
  };
  Task<void> a = takes_turns('a'), b = takes_turns('b'), c = receives();
  a.start();
  b.start();
  c.start();
  EXPECT_EQ(turns, "ab");
  EXPECT_TRUE(job.outcome(right.send(ConstBuffer(&value, sizeof(value)))).ok());
  for (int round = 0; round < 1000 && !(a.finished() && b.finished()); ++round) job.run(1);
  EXPECT_TRUE(a.finished() && b.finished());
  EXPECT_EQ(turns, "ababab");
  EXPECT_EQ(got, 7);
}

TEST(Yield, resumes_once_in_a_progress) {
  InProcessJob job(test::ranks(1));
  Worker& worker = job.rank(0).worker();
  int turns = 0;
  const auto yields = [&]() -> Task<void> {
    for (;; ++turns) co_await yield(worker);
  };
  Task<void> task = yields();
  task.start();
  for (int round = 1; round <= 100; ++round) {
    worker.progress();
    ASSERT_EQ(turns, round);
  }
}

TEST(Peers, whose_endpoint_the_network_gave_up_are_lost_to_whoever_only_receives) {
  port::FaultyWire* wire = nullptr;
  JobOptions options;
  options.wrap = [&](int rank, std::unique_ptr<port::Wire> inside) {
    auto faulty = std::make_unique<port::FaultyWire>(std::move(inside), port::FaultPolicy{});
    if (rank == 0) wire = faulty.get();
    return faulty;
  };
  InProcessJob job(options);
  Channel channel = Channel::open(job.rank(0), Rank{1}, ChannelId{1});
  int got = 0;
  Operation receive = channel.recv(Buffer(&got, sizeof(got)));
  job.run(100);
  EXPECT_FALSE(receive.done());
  Engine& engine = job.rank(0).worker().engine();
  const std::string name = fmt::format("rank 1 (pid {}) is gone", engine.peers().connect(Rank{1}).record.pid);
  wire->fail(engine.peers().connect(Rank{1}).endpoint);
  EXPECT_EQ(job.outcome(receive).status, Status::peer_lost);
  EXPECT_EQ(engine.counters().peers_lost.read(), 1u);
  try {
    const Channel another = Channel::open(job.rank(0), Rank{1}, ChannelId{2});
    ADD_FAILURE() << "a channel to a lost rank was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::peer_lost);
    EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
  }
}

std::vector<int>& ended_services() {
  static std::vector<int> ended;
  return ended;
}

template <int Number>
class NotingService final : public Service {
 public:
  explicit NotingService(Engine& engine) {
    if constexpr (Number > 0) engine.service<NotingService<Number - 1>>();
  }
  ~NotingService() override { ended_services().push_back(Number); }
};

TEST(Services, end_in_the_order_in_which_they_were_made) {
  ended_services().clear();
  {
    InProcessJob job(test::ranks(1));
    job.rank(0).worker().engine().service<NotingService<3>>();
  }
  EXPECT_EQ(ended_services(), (std::vector<int>{0, 1, 2, 3}));
}

/// Wakes a task as it ends.
class PartingService final : public Service {
 public:
  explicit PartingService(Engine&) {}
  ~PartingService() override { parting.deliver(); }
  Promise<> parting;
};

TEST(Services, may_resume_tasks_that_sleep_as_they_end) {
  std::optional<InProcessJob> job(test::ranks(1));
  const auto sleeps = [](Worker& worker, Future<> first) -> Task<void> {
    co_await first;
    co_await sleep_for(worker, std::chrono::hours(1));
  };
  Worker& worker = job->rank(0).worker();
  Task<void> task = sleeps(worker, worker.engine().service<PartingService>().parting.future());
  task.start();
  job.reset();
  EXPECT_FALSE(task.finished());
}

TEST(Sleep, of_a_task_may_outlive_its_runtime) {
  std::optional<InProcessJob> job(test::ranks(1));
  const auto sleeps = [](Worker& worker) -> Task<void> { co_await sleep_for(worker, std::chrono::hours(1)); };
  Task<void> task = sleeps(job->rank(0).worker());
  task.start();
  job.reset();
  EXPECT_FALSE(task.finished());
}

/// A send whose two moments come in one progress.
struct SendOfTwoMoments {
  SendOfTwoMoments()
      : left(Channel::open(job.rank(0), Rank{0}, ChannelId{1})),
        right(Channel::open(job.rank(0), Rank{0}, ChannelId{1})) {
    op.emplace();
    op->source_free = {[](void* self, const OpResult&) noexcept { static_cast<SendOfTwoMoments*>(self)->freed(); },
                       this};
    op->delivered = {[](void* self, const OpResult&) noexcept { ++static_cast<SendOfTwoMoments*>(self)->delivered; },
                     this};
  }
  void freed() {
    ++source_free;
    if (on_freed) on_freed();
  }
  /// Posts it, and lets both moments come before the first is told.
  void run() {
    Operation receive = right.recv(Buffer(&got, sizeof(got)));
    ASSERT_EQ(left.post_send(ConstBuffer(&value, sizeof(value)), *op), Status::in_progress);
    EXPECT_TRUE(job.outcome(receive).ok());
    job.run(100);
  }

  InProcessJob job{test::ranks(1)};
  Channel left, right;
  int value = 4, got = 0;
  int source_free = 0, delivered = 0;
  std::function<void()> on_freed;
  std::optional<Op> op;
};

TEST(Op, reports_both_moments) {
  SendOfTwoMoments send;
  send.run();
  EXPECT_EQ(send.source_free, 1);
  EXPECT_EQ(send.delivered, 1);
}

TEST(Op, detached_in_its_first_sink_does_not_fire_the_second) {
  SendOfTwoMoments send;
  send.on_freed = [&] { send.op->detach(); };
  send.run();
  EXPECT_EQ(send.source_free, 1);
  EXPECT_EQ(send.delivered, 0);
}

TEST(Op, that_is_destroyed_in_its_first_sink_does_not_fire_the_second) {
  SendOfTwoMoments send;
  send.on_freed = [&] { send.op.reset(); };
  send.run();
  EXPECT_EQ(send.source_free, 1);
  EXPECT_EQ(send.delivered, 0);
}

TEST(Op, detached_in_its_only_sink_while_both_moments_are_due_at_once) {
  InProcessJob job(test::ranks(1));
  Engine& engine = job.rank(0).worker().engine();
  struct Sinks {
    Op op;
    int delivered = 0;
  } sinks;
  sinks.op.source_free = {[](void* self, const OpResult&) noexcept { static_cast<Sinks*>(self)->op.detach(); }, &sinks};
  sinks.op.delivered = {[](void* self, const OpResult&) noexcept { ++static_cast<Sinks*>(self)->delivered; }, &sinks};
  struct Owner : OpOwner {
  } owner;
  owner.own(engine.completions(), sinks.op);
  engine.completions().finish(owner, {});  // both
  engine.progress().step();
  EXPECT_EQ(sinks.delivered, 0);
  EXPECT_FALSE(sinks.op.pending());
}

TEST(Op, may_outlive_its_runtime) {
  Op pending, due;
  int got = 0, fired = 0;
  due.delivered = {[](void*, const OpResult&) noexcept {}, nullptr};
  pending.delivered = {[](void* self, const OpResult&) noexcept { ++*static_cast<int*>(self); }, &fired};
  {
    InProcessJob job;
    Channel channel = Channel::open(job.rank(0), Rank{1}, ChannelId{1});
    ASSERT_EQ(channel.post_recv(Buffer(&got, sizeof(got)), due), Status::in_progress);
    channel.close();
    Channel open = Channel::open(job.rank(1), Rank{0}, ChannelId{2});
    ASSERT_EQ(open.post_send(ConstBuffer(&got, sizeof(got)), pending), Status::in_progress);
  }
  EXPECT_FALSE(pending.pending());
  EXPECT_FALSE(due.pending());
  EXPECT_EQ(pending.result.status, Status::canceled);
  EXPECT_EQ(fired, 0) << "a sink would run on a runtime that is going";
  EXPECT_FALSE(due.result.ok()) << "the network may see the end of the runtime before the receive is withdrawn";
}

TEST(Op, that_is_pending_is_not_posted_again) {
  InProcessJob job(test::ranks(1));
  Channel left = Channel::open(job.rank(0), Rank{0}, ChannelId{1});
  Channel right = Channel::open(job.rank(0), Rank{0}, ChannelId{1});
  struct Sink {
    int fired = 0;
    OpResult result;
  } sink;
  int got = 0;
  const int value = 6;
  Op op;
  op.delivered = {[](void* self, const OpResult& result) noexcept {
                    auto& into = *static_cast<Sink*>(self);
                    ++into.fired;
                    into.result = result;
                  },
                  &sink};
  ASSERT_EQ(right.post_recv(Buffer(&got, sizeof(got)), op), Status::in_progress);
  EXPECT_EQ(right.post_recv(Buffer(&got, sizeof(got)), op), Status::invalid_argument);
  EXPECT_EQ(right.post_send(ConstBuffer(&value, sizeof(value)), op), Status::invalid_argument);
  Operation send = left.send(ConstBuffer(&value, sizeof(value)));
  EXPECT_TRUE(job.outcome(send).ok());
  job.run(100);
  EXPECT_EQ(sink.fired, 1) << "the first post goes on";
  EXPECT_TRUE(sink.result.ok());
  EXPECT_EQ(got, value);
}

}  // namespace
}  // namespace brant
