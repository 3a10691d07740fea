#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/core/future.h"
#include "brant/core/task.h"

namespace brant {
namespace {

TEST(Task, returns_its_value_to_the_awaiter) {
  auto inner = []() -> Task<int> { co_return 20; };
  auto outer = [&]() -> Task<std::string> { co_return std::to_string(co_await inner() + co_await inner() + 2); };
  Task<std::string> task = outer();
  task.start();
  ASSERT_TRUE(task.finished());
  EXPECT_EQ(task.take(), "42");
}

TEST(Task, exceptions_travel_to_the_awaiter) {
  auto inner = []() -> Task<int> {
    throw std::runtime_error("inner");
    co_return 0;
  };
  auto outer = [&]() -> Task<std::string> {
    try {
      co_await inner();
    } catch (const std::runtime_error& error) {
      co_return error.what();
    }
    co_return "nothing";
  };
  Task<std::string> task = outer();
  task.start();
  EXPECT_EQ(task.take(), "inner");
}

TEST(Task, a_long_chain_does_not_grow_the_stack) {
  auto leaf = []() -> Task<int> { co_return 1; };
  auto loop = [&]() -> Task<int> {
    int sum = 0;
    for (int i = 0; i < 200'000; ++i) sum += co_await leaf();
    co_return sum;
  };
  Task<int> task = loop();
  task.start();
  EXPECT_EQ(task.take(), 200'000);
}

/// The status of what `call` throws; ok if nothing.
template <typename Call>
Status refusal(Call&& call) {
  try {
    call();
  } catch (const Error& fault) {
    return fault.status();
  }
  return Status::ok;
}

TEST(Task, runs_once) {
  auto simple = []() -> Task<int> { co_return 7; };
  auto awaits = [](Task<int> other) -> Task<int> { co_return co_await std::move(other); };
  Task<int> task = simple();
  task.start();
  EXPECT_EQ(refusal([&] { task.start(); }), Status::invalid_argument) << "finished";
  EXPECT_EQ(task.take(), 7) << "its result stays";

  Task<int> again = awaits(std::move(task));
  again.start();
  EXPECT_EQ(refusal([&] { static_cast<void>(again.take()); }), Status::invalid_argument) << "awaited after its end";

  Promise<int> promise;
  auto waits = [](Future<int> future) -> Task<int> { co_return co_await future; };
  Task<int> waiting = waits(promise.future());
  waiting.start();
  EXPECT_EQ(refusal([&] { waiting.start(); }), Status::invalid_argument) << "it waits for a future that is not ready";
  promise.deliver(3);
  EXPECT_EQ(waiting.take(), 3);

  const Task<int> taken = std::move(waiting);
  // NOLINTNEXTLINE(bugprone-use-after-move): that is what is refused
  EXPECT_EQ(refusal([&] { waiting.start(); }), Status::invalid_argument) << "moved from";
}

TEST(Future, that_is_not_ready_has_nothing_to_get) {
  Promise<int> promise;
  Future<int> future = promise.future();
  EXPECT_EQ(refusal([&] { static_cast<void>(future.get()); }), Status::invalid_argument);
  Promise<> plain;
  Future<> nothing = plain.future();
  EXPECT_EQ(refusal([&] { nothing.get(); }), Status::invalid_argument);
  promise.deliver(4);
  EXPECT_EQ(future.get(), 4);
}

TEST(Future, refuses_a_second_coroutine_and_keeps_the_first) {
  Promise<int> promise;
  Future<int> future = promise.future();
  auto waits = [](Future<int>& shared) -> Task<int> { co_return co_await shared; };
  Task<int> first = waits(future), second = waits(future);
  first.start();
  second.start();
  ASSERT_TRUE(second.finished());
  EXPECT_EQ(refusal([&] { static_cast<void>(second.take()); }), Status::invalid_argument);
  promise.deliver(9);
  ASSERT_TRUE(first.finished());
  EXPECT_EQ(first.take(), 9);
}

TEST(Future, resumes_its_awaiter_when_delivered) {
  Promise<int> promise;
  auto waits = [](Future<int> future) -> Task<int> { co_return co_await future; };
  Task<int> task = waits(promise.future());
  task.start();
  EXPECT_FALSE(task.finished());
  promise.deliver(5);
  ASSERT_TRUE(task.finished());
  EXPECT_EQ(task.take(), 5);
}

TEST(Future, tells_a_sink_once_and_also_when_ready_before) {
  int told = 0;
  const Completion sink{[](void* self, const OpResult& result) noexcept {
                          if (result.ok()) ++*static_cast<int*>(self);
                        },
                        &told};
  Promise<> early;
  Future<> late_reader = early.future();
  early.deliver();
  late_reader.notify(sink);
  EXPECT_EQ(told, 1);
  Promise<> promise;
  Future<> future = promise.future();
  future.notify(sink);
  promise.deliver();
  EXPECT_EQ(told, 2);
  EXPECT_THROW(promise.deliver(), Error);
}

TEST(Future, a_promise_given_up_fails_it_with_canceled) {
  Future<int> orphan = [] {
    Promise<int> promise;
    return promise.future();
  }();
  ASSERT_TRUE(orphan.ready());
  try {
    orphan.get();
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::canceled);
  }
}

TEST(WhenAll, ends_with_the_last_and_rethrows_the_first_failure) {
  Promise<> first;
  Promise<> second;
  std::vector<int> order;
  auto step = [&](Future<> gate, int name) -> Task<void> {
    co_await gate;
    order.push_back(name);
    if (name == 2) throw std::runtime_error("two failed");
  };
  Task<void> all = when_all(step(first.future(), 1), step(second.future(), 2));
  all.start();
  second.deliver();
  EXPECT_FALSE(all.finished());
  first.deliver();
  ASSERT_TRUE(all.finished());
  EXPECT_EQ(order, (std::vector<int>{2, 1}));
  EXPECT_THROW(all.take(), std::runtime_error);
}

TEST(WhenAll, takes_any_number_also_none) {
  Task<void> none = when_all(std::vector<Task<void>>{});
  none.start();
  EXPECT_TRUE(none.finished());
  int ran = 0;
  auto step = [&]() -> Task<void> {
    ++ran;
    co_return;
  };
  std::vector<Task<void>> many;
  for (int i = 0; i < 100; ++i) many.push_back(step());
  Task<void> all = when_all(std::move(many));
  all.start();
  EXPECT_TRUE(all.finished());
  EXPECT_EQ(ran, 100);
}

TEST(WhenAll, can_be_given_up_before_its_end) {
  Promise<> never;
  auto step = [](Future<> gate) -> Task<void> { co_await gate; };
  {
    Task<void> all = when_all(step(never.future()));
    all.start();
    EXPECT_FALSE(all.finished());
  }
}

}  // namespace
}  // namespace brant
