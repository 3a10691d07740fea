#include "brant/ops/rpc.h"

#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/uncaught.h"
#include "ops/rpc/service.h"
#include "support/in_process_job.h"

namespace brant {
namespace {

using test::InProcessJob;

/// Ranks that call each other, in one thread.
struct Callers {
  explicit Callers(int ranks = 2) : job(test::ranks(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) rpcs.emplace_back(job.rank(rank));
  }
  Rpc& operator[](std::size_t rank) { return rpcs[rank]; }

  template <typename T>
  T result(Future<T> future) {
    EXPECT_TRUE(job.run_until([&] { return future.ready(); }));
    return future.get();
  }
  template <typename T>
  Error failure(Future<T> future) {
    EXPECT_TRUE(job.run_until([&] { return future.ready(); }));
    try {
      static_cast<void>(future.get());
    } catch (const Error& error) {
      return error;
    }
    return {Status::ok, "it did not fail"};
  }
  /// Messages that are not given back, soon after.
  [[nodiscard]] std::size_t lent(int rank) {
    job.run(50);
    return job.rank(rank).worker().engine().service<am::Messenger>().lent();
  }

  InProcessJob job;
  std::vector<Rpc> rpcs;
};

std::vector<int> g_ran;  // what the functions of a test have done
struct FreshRecord {
  FreshRecord() { g_ran.clear(); }
};

int add(int left, int right) { return left + right; }
void note(int number) { g_ran.push_back(number); }
int who(Caller caller) { return caller.rank.value * 100 + caller.runtime.rank().value; }
int who_by_reference(const Caller& caller, int more) { return caller.rank.value + more; }

TEST(Rpc, functions_run_elsewhere_and_their_results_come_back) {
  Callers ranks;
  EXPECT_EQ(ranks.result(ranks[0].call<&add>(Rank{1}, 2, 3)), 5);
  EXPECT_EQ(ranks.result(ranks[0].call<add>(Rank{1}, short{2}, true)), 3) << "arguments become what is declared";
  EXPECT_EQ(ranks.result(ranks[1].call<[](int value) { return value * 2; }>(Rank{0}, 21)), 42);
  EXPECT_EQ(ranks.lent(0), 0u);
  EXPECT_EQ(ranks.lent(1), 0u);
}

TEST(Rpc, two_lambdas_of_one_place_are_two_functions) {
  Callers ranks;
  Future<int> first = ranks[0].call<[](int value) { return value + 1; }>(Rank{1}, 1);
  Future<int> second = ranks[0].call<[](int value) { return value + 2; }>(Rank{1}, 1);
  EXPECT_EQ(ranks.result(std::move(first)), 2);
  EXPECT_EQ(ranks.result(std::move(second)), 3);
}

TEST(Rpc, a_function_may_ask_who_called) {
  Callers ranks(3);
  EXPECT_EQ(ranks.result(ranks[2].call<&who>(Rank{1})), 201);
  EXPECT_EQ(ranks.result(ranks[2].call<&who_by_reference>(Rank{1}, 40)), 42);
}

struct Particle {
  double mass = 0;
  std::vector<std::string> tracks;
  void serialize(auto& archive) { archive(mass, tracks); }
  bool operator==(const Particle&) const = default;
};
using Sorts = std::tuple<std::string, std::map<int, Particle>, std::optional<double>, std::variant<int, std::string>>;
Sorts mirror(Sorts value) { return value; }
std::vector<double> echo(std::vector<double> values) { return values; }

TEST(Rpc, arguments_and_results_of_all_sorts) {
  Callers ranks;
  const Sorts value{"text", {{1, {2.5, {"a", "b"}}}, {7, {}}}, 0.5, std::string("other")};
  EXPECT_EQ(ranks.result(ranks[0].call<&mirror>(Rank{1}, value)), value);
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{1'000'000}}) {
    std::vector<double> values(count);
    std::iota(values.begin(), values.end(), 0.0);
    EXPECT_EQ(ranks.result(ranks[0].call<&echo>(Rank{1}, values)), values) << count;
  }
  EXPECT_EQ(ranks.lent(0), 0u);
  EXPECT_EQ(ranks.lent(1), 0u);
}

const void* g_looked_at = nullptr;
double total(std::span<const double> values, std::string_view factor) {
  g_looked_at = values.data();
  return std::accumulate(values.begin(), values.end(), 0.0) * std::stod(std::string(factor));
}

TEST(Rpc, spans_and_string_views_look_into_the_message) {
  Callers ranks;
  std::vector<double> values(100, 1.5);
  Future<double> sum = ranks[0].call<&total>(Rank{0}, std::span<const double>(values), std::string_view("2"));
  values.assign(100, 0.0);  // packed by now
  EXPECT_EQ(ranks.result(std::move(sum)), 300.0);
  EXPECT_NE(g_looked_at, values.data());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(g_looked_at) % alignof(double), 0u);
}

TEST(Rpc, a_void_function_answers_too) {
  const FreshRecord fresh;
  Callers ranks;
  ranks.result(ranks[0].call<&note>(Rank{1}, 7));
  EXPECT_EQ(g_ran, std::vector<int>{7});
}

TEST(Rpc, a_call_of_the_own_rank_is_queued) {
  const FreshRecord fresh;
  Callers ranks;
  Future<int> sum = ranks[0].call<&add>(Rank{0}, 1, 2);
  EXPECT_EQ(ranks[0].tell<&note>(Rank{0}, 1), Status::ok);
  EXPECT_FALSE(sum.ready());
  EXPECT_TRUE(g_ran.empty());
  EXPECT_EQ(ranks.result(std::move(sum)), 3);
  ASSERT_TRUE(ranks.job.run_until([] { return !g_ran.empty(); }));
  EXPECT_EQ(ranks.lent(0), 0u);
}

void throws_error(int) { throw Error(Status::device_failed, "on purpose"); }
int throws_other() { throw std::runtime_error("of the user's own"); }
int throws_anything() { throw 7; }  // NOLINT(bugprone-std-exception-baseclass): what is to be survived

TEST(Rpc, what_a_function_throws_comes_back_in_words) {
  Callers ranks;
  const Error error = ranks.failure(ranks[0].call<&throws_error>(Rank{1}, 1));
  EXPECT_EQ(error.status(), Status::device_failed);
  EXPECT_NE(std::string(error.what()).find("throws_error on rank 1 threw: on purpose"), std::string::npos)
      << error.what();
  const Error other = ranks.failure(ranks[0].call<&throws_other>(Rank{1}));
  EXPECT_EQ(other.status(), Status::internal);
  EXPECT_NE(std::string(other.what()).find("of the user's own"), std::string::npos) << other.what();
  EXPECT_EQ(ranks.failure(ranks[0].call<&throws_anything>(Rank{0})).status(), Status::internal);
  EXPECT_EQ(ranks.result(ranks[0].call<&add>(Rank{1}, 1, 1)), 2) << "life goes on";
}

TEST(RpcDeathTest, what_a_told_function_throws_ends_the_program) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        print_uncaught_errors();
        Callers ranks;
        static_cast<void>(ranks[0].tell<&throws_error>(Rank{1}, 1));
        ranks.job.run(1000);
      },
      testing::ExitedWithCode(1), "throws_error, which rank 0 told rank 1 to run, threw: on purpose");
}

// --- functions that call
Rpc* g_rpc_of_rank[3] = {};
int countdown(Caller caller, int left) {
  if (left > 0) {
    const int here = caller.runtime.rank().value;
    EXPECT_EQ(g_rpc_of_rank[here]->tell<&countdown>(Rank{1 - here}, left - 1), Status::ok);
  }
  g_ran.push_back(left);
  return left;
}
Task<int> factorial(Caller caller, int number) {
  if (number == 0) co_return 1;
  const int here = caller.runtime.rank().value;
  co_return number* co_await g_rpc_of_rank[here]->call<&factorial>(Rank{(here + 1) % 3}, number - 1);
}

TEST(Rpc, functions_may_call) {
  const FreshRecord fresh;
  Callers ranks(3);
  for (std::size_t rank = 0; rank < 3; ++rank) g_rpc_of_rank[rank] = &ranks[rank];
  EXPECT_EQ(ranks.result(ranks[0].call<&countdown>(Rank{1}, 20)), 20);
  ASSERT_TRUE(ranks.job.run_until([] { return g_ran.size() == 21; }));
  EXPECT_EQ(ranks.result(ranks[0].call<&factorial>(Rank{1}, 10)), 3'628'800);
  ranks.job.run(50);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.lent(rank), 0u);
}

// --- functions that are tasks
std::optional<Promise<int>> g_gate;
Task<std::string> when_open(std::string_view text, std::vector<int> more) {
  const int number = co_await g_gate->future();
  co_return std::string(text) + std::to_string(number + more.at(0));
}
Task<void> fails_later() {
  static_cast<void>(co_await g_gate->future());
  throw Error(Status::not_found, "after a while");
}

TEST(Rpc, the_answer_of_a_task_goes_at_its_end_and_its_views_hold_until_then) {
  Callers ranks;
  g_gate.emplace();
  Future<std::string> text = ranks[0].call<&when_open>(Rank{1}, "a text of some length: ", std::vector{40});
  ranks.job.run(50);
  EXPECT_FALSE(text.ready());
  g_gate->deliver(2);
  EXPECT_EQ(ranks.result(std::move(text)), "a text of some length: 42");
  g_gate.emplace();
  Future<void> nothing = ranks[0].call<&fails_later>(Rank{1});
  ranks.job.run(50);
  g_gate->deliver(0);
  const Error error = ranks.failure(std::move(nothing));
  EXPECT_EQ(error.status(), Status::not_found);
  EXPECT_NE(std::string(error.what()).find("after a while"), std::string::npos);
  ranks.job.run(50);
  EXPECT_EQ(ranks.lent(1), 0u);
}

TEST(Rpc, the_runtime_ends_while_tasks_run_and_calls_are_awaited) {
  std::optional<Callers> ranks(std::in_place);
  g_gate.emplace();
  const std::string large(100'000, 'x');
  Future<std::string> text = (*ranks)[0].call<&when_open>(Rank{1}, large, std::vector{40});
  Future<std::string> own = (*ranks)[0].call<&when_open>(Rank{0}, large, std::vector{40});
  ranks->job.run(50);
  Future<int> unrun = (*ranks)[0].call<&add>(Rank{0}, 1, 2);
  EXPECT_EQ((*ranks)[1].tell<&note>(Rank{1}, 1), Status::ok);
  ranks.reset();
  for (Future<std::string>* each : {&text, &own}) {
    ASSERT_TRUE(each->ready());
    EXPECT_THROW(static_cast<void>(each->get()), Error);
  }
  EXPECT_TRUE(unrun.ready());
}

TEST(Rpc, a_future_that_goes_away_is_not_told) {
  const FreshRecord fresh;
  Callers ranks;
  static_cast<void>(ranks[0].call<&note>(Rank{1}, 1));
  ASSERT_TRUE(ranks.job.run_until([] { return !g_ran.empty(); }));
  ranks.job.run(50);
  EXPECT_EQ(ranks[0].service().answers().count(), 0u);
}

TEST(Rpc, a_packed_call_goes_when_it_is_sent) {
  const FreshRecord fresh;
  Callers ranks;
  PackedCall later = ranks[0].pack<&note>(Rank{1}, 5);
  {
    const PackedCall never = ranks[0].pack<&note>(Rank{1}, 6);
    EXPECT_TRUE(never.packed());
  }
  ranks.job.run(50);
  EXPECT_TRUE(g_ran.empty());
  PackedCall moved;
  EXPECT_EQ(moved.send(), Status::no_memory);
  moved = std::move(later);
  EXPECT_EQ(moved.to(), Rank{1});
  EXPECT_EQ(moved.send(), Status::ok);
  EXPECT_FALSE(moved.packed());
  ASSERT_TRUE(ranks.job.run_until([] { return !g_ran.empty(); }));
  ranks.job.run(50);
  EXPECT_EQ(g_ran, std::vector<int>{5});
  EXPECT_EQ(ranks.lent(0), 0u);
}

TEST(Rpc, a_rank_that_there_is_not) {
  Callers ranks;
  EXPECT_THROW(static_cast<void>(ranks[0].call<&add>(Rank{2}, 1, 2)), Error);
  EXPECT_EQ(ranks[0].tell<&note>(Rank{-1}, 1), Status::invalid_argument);
  EXPECT_EQ(ranks[0].try_call<&add>(Rank{2}, 1, 2).status(), Status::invalid_argument);
  EXPECT_EQ(ranks.lent(0), 0u);
}

TEST(Rpc, calls_that_come_before_the_first_rpc_wait_for_it) {
  InProcessJob job;
  const Rpc early(job.rank(0));
  Future<int> sum = early.call<&add>(Rank{1}, 1, 2);
  job.run(50);
  EXPECT_FALSE(sum.ready());
  const Rpc late(job.rank(1));
  ASSERT_TRUE(job.run_until([&] { return sum.ready(); }));
  EXPECT_EQ(sum.get(), 3);
}

}  // namespace
}  // namespace brant
