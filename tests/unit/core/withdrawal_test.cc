// Whoever waits and is destroyed is not resumed later, whatever it waited for; and the other way round.
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "brant/core/future.h"
#include "brant/core/sinks.h"
#include "brant/core/timer.h"
#include "brant/ops/channel.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using test::InProcessJob;

struct Pair {
  InProcessJob job;
  Channel left = Channel::open(job.rank(0), Rank{1}, ChannelId{7});
  Channel right = Channel::open(job.rank(1), Rank{0}, ChannelId{7});
  int value = 5, got = 0;

  void send() { EXPECT_TRUE(job.outcome(left.send(ConstBuffer(&value, sizeof(value)))).ok()); }
};

TEST(Withdrawal, of_a_task_that_awaits_an_operation_of_somebody_else) {
  Pair pair;
  Operation receive = pair.right.recv(Buffer(&pair.got, sizeof(int)));
  {
    const auto waits = [&]() -> Task<void> { EXPECT_TRUE((co_await receive).ok()); };
    Task<void> task = waits();
    task.start();
  }
  pair.send();
  EXPECT_TRUE(pair.job.outcome(receive).ok());
}

TEST(Operation, refuses_a_second_coroutine_and_keeps_the_first) {
  Pair pair;
  Operation receive = pair.right.recv(Buffer(&pair.got, sizeof(int)));
  const auto waits = [](Operation& shared) -> Task<Status> { co_return (co_await shared).status; };
  const auto waits_shortly = [](Worker& worker, Operation& shared) -> Task<Status> {
    co_return (co_await within(worker, shared, std::chrono::hours(1))).status;
  };
  Task<Status> first = waits(receive), second = waits(receive);
  Task<Status> third = waits_shortly(pair.job.rank(1).worker(), receive);
  for (Task<Status>* task : {&first, &second, &third}) task->start();
  for (Task<Status>* refused : {&second, &third}) {
    ASSERT_TRUE(refused->finished());
    EXPECT_THROW(static_cast<void>(refused->take()), Error);
  }
  pair.send();
  pair.job.run(100);
  ASSERT_TRUE(first.finished());
  EXPECT_EQ(first.take(), Status::ok);
}

TEST(Withdrawal, of_a_task_that_awaits_within_a_time) {
  Pair pair;
  Operation receive = pair.right.recv(Buffer(&pair.got, sizeof(int)));
  {
    const auto waits = [&]() -> Task<void> {
      EXPECT_TRUE((co_await within(pair.job.rank(1).worker(), receive, std::chrono::hours(1))).ok());
    };
    Task<void> task = waits();
    task.start();
  }
  pair.send();
  EXPECT_TRUE(pair.job.outcome(receive).ok());
}

TEST(Withdrawal, of_a_task_that_yields) {
  Pair pair;
  {
    const auto yields = [&]() -> Task<void> { co_await yield(pair.job.rank(1).worker()); };
    Task<void> task = yields();
    task.start();
  }
  pair.send();  // the network moves, and the timers are looked at
}

TEST(Withdrawal, of_an_operation_ends_who_awaits_it_when_the_time_is_over) {
  Pair pair;
  auto receive = std::make_unique<Operation>(
      Moment::delivered, [&](Op& op) noexcept { return pair.right.post_recv(Buffer(&pair.got, sizeof(int)), op); });
  const auto waits = [&]() -> Task<Status> {
    co_return (co_await within(pair.job.rank(1).worker(), *receive, std::chrono::milliseconds(50))).status;
  };
  Task<Status> task = waits();
  task.start();
  receive.reset();
  EXPECT_FALSE(task.finished());
  ASSERT_TRUE(pair.job.run_until([&] { return task.finished(); })) << "its time is over";
  EXPECT_EQ(task.take(), Status::canceled);
}

TEST(Withdrawal, is_too_late_for_a_message_that_came_while_the_receiver_computed) {
  for (const bool links : {false, true}) {
    test::JobOptions options;
    options.links = links;
    Pair pair{InProcessJob(options)};
    const auto waits = [&]() -> Task<OpResult> {
      Operation receive = pair.right.recv(Buffer(&pair.got, sizeof(int)));
      co_return co_await within(pair.job.rank(1).worker(), receive, std::chrono::milliseconds(1));
    };
    Task<OpResult> task = waits();
    task.start();
    pair.job.run(1);
    Operation sent = pair.left.send(ConstBuffer(&pair.value, sizeof(int)));
    for (int round = 0; round < 10; ++round) pair.job.rank(0).worker().progress();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // both are due, in whatever order they are looked at
    ASSERT_TRUE(pair.job.run_until([&] { return task.finished(); }));
    const OpResult result = task.take();
    if (result.ok()) {
      EXPECT_EQ(pair.got, 5);
    } else {  // then the message is the next one's
      EXPECT_EQ(result.status, Status::timed_out);
      int next = 0;
      EXPECT_TRUE(pair.job.outcome(pair.right.recv(Buffer(&next, sizeof(int)))).ok());
      EXPECT_EQ(next, 5);
    }
    EXPECT_TRUE(pair.job.outcome(sent).ok());
  }
}

TEST(Withdrawal, of_a_task_that_awaits_a_counter_of_somebody_else) {
  Pair pair;
  Counter counter;
  Op op;
  op.delivered = counter.sink();
  counter.track(pair.right.post_recv(Buffer(&pair.got, sizeof(int)), op), op);
  {
    const auto waits = [&]() -> Task<void> { EXPECT_TRUE((co_await counter).ok()); };
    Task<void> task = waits();
    task.start();
  }
  pair.send();
  EXPECT_TRUE(pair.job.run_until([&] { return counter.pending() == 0; }));
}

TEST(Withdrawal, of_a_task_with_its_counter_and_operations) {
  Pair pair;
  {
    const auto waits = [&]() -> Task<void> {
      Op op;
      Counter counter;
      op.delivered = counter.sink();
      counter.track(pair.right.post_recv(Buffer(&pair.got, sizeof(int)), op), op);
      EXPECT_TRUE((co_await counter).ok());
    };
    Task<void> task = waits();
    task.start();
  }
  pair.job.run(10);  // the receive is taken back
  pair.send();
  int second = 0;
  Operation receive = pair.right.recv(Buffer(&second, sizeof(int)));
  EXPECT_TRUE(pair.job.outcome(receive).ok());
  EXPECT_EQ(second, 5) << "the receive that was taken back gave its turn to this one";
  EXPECT_EQ(pair.got, 0);
}

TEST(Withdrawal, of_a_task_that_awaits_another_task_of_somebody_else) {
  Promise<int> promise;
  const auto inner = [](Future<int> future) -> Task<int> { co_return co_await future; };
  Task<int> awaited = inner(promise.future());
  {
    const auto outer = [](Task<int>& task) -> Task<void> { EXPECT_EQ(co_await std::move(task), 3); };
    Task<void> task = outer(awaited);
    task.start();
  }
  promise.deliver(3);
  ASSERT_TRUE(awaited.finished());
  EXPECT_EQ(awaited.take(), 3);
}

TEST(Withdrawal, of_a_future_that_goes_before_who_awaits_it) {
  auto promise = std::make_unique<Promise<>>();
  auto future = std::make_unique<Future<>>(promise->future());
  const auto waits = [](Future<>& awaited) -> Task<void> { co_await awaited; };
  std::optional<Task<void>> task(waits(*future));
  task->start();
  future.reset();
  promise->deliver();
  promise.reset();
  EXPECT_FALSE(task->finished());
  task.reset();
}

TEST(Withdrawal, of_tasks_that_end_each_other_when_they_go) {
  const auto holds = [](Future<> never, Promise<>) -> Task<void> { co_await never; };
  const auto waits = [](Future<> given_up) -> Task<void> {
    try {
      co_await given_up;
    } catch (const Error&) {  // its promise went with the other task's frame
    }
  };
  Promise<> never, given;
  Future<> given_future = given.future();
  std::optional<Task<void>> all(when_all(holds(never.future(), std::move(given)), waits(std::move(given_future))));
  all->start();
  all.reset();
}

TEST(Promise, that_is_assigned_over_fails_its_future) {
  Promise<int> promise;
  Future<int> first = promise.future();
  promise = Promise<int>();
  ASSERT_TRUE(first.ready());
  try {
    first.get();
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::canceled);
  }
  Future<int> second = promise.future();
  promise.deliver(7);
  EXPECT_EQ(second.get(), 7);
}

TEST(Promise, may_be_destroyed_by_whom_it_wakes) {
  std::optional<Promise<int>> promise(std::in_place);
  const auto waits = [](std::optional<Promise<int>>& given, Future<int> future) -> Task<int> {
    const int value = co_await future;
    {
      Future<int> gone = std::move(future);
    }
    given.reset();
    co_return value;
  };
  Task<int> task = waits(promise, promise->future());
  task.start();
  promise->deliver(9);
  ASSERT_TRUE(task.finished());
  EXPECT_EQ(task.take(), 9);
}

}  // namespace
}  // namespace brant
