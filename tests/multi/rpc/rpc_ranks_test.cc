// Runs as every rank of a job (`brant run -n N`): remote calls in real processes over the real network.
#include <chrono>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/rpc.h"
#include "support/effort.h"
#include "support/job_runtime.h"

namespace brant {
namespace {

using test::job;

constexpr auto kPatience = std::chrono::seconds(60);

Rpc& rpc() {
  static Rpc the_one(job());
  return the_one;
}

template <typename T>
T result(Future<T> future) {
  EXPECT_EQ(job().worker().wait_until([&] { return future.ready(); }, kPatience), Status::ok);
  return future.get();
}

int self() { return job().rank().value; }
Rank next() { return Rank{(self() + 1) % job().size()}; }

/// All ranks come here, and their calls have run: those of each are ended by the last it makes.
int g_met = 0;
void meet() {
  for (int rank = 0; rank < job().size(); ++rank) {
    result(rpc().call<[] { ++g_met; }>(Rank{rank}));
  }
  EXPECT_EQ(job().worker().wait_until([] { return g_met >= job().size(); }, kPatience), Status::ok);
  g_met -= job().size();
}

std::vector<double> doubled(std::span<const double> values, std::string_view name) {
  std::vector<double> result(values.begin(), values.end());
  for (double& value : result) value *= 2;
  if (name != "doubled") result.clear();
  return result;
}

TEST(RpcRanks, arguments_and_results_of_all_sizes) {
  for (std::size_t count = 0; count <= 2'000'000; count = count * 5 + 1) {
    std::vector<double> values(count);
    std::iota(values.begin(), values.end(), 0.0);
    Future<std::vector<double>> answer =
        rpc().call<&doubled>(next(), std::span<const double>(values), std::string_view("doubled"));
    const std::vector<double> twice = result(std::move(answer));
    ASSERT_EQ(twice.size(), count);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(twice[i], 2 * values[i]);
  }
  meet();
}

TEST(RpcRanks, what_a_function_throws_comes_back) {
  try {
    result(
        rpc().call<[](int code) -> int { throw Error(Status::timed_out, "code " + std::to_string(code)); }>(next(), 7));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::timed_out);
    EXPECT_NE(std::string(error.what()).find("on rank " + std::to_string(next().value) + " threw: code 7"),
              std::string::npos)
        << error.what();
  }
  meet();
}

/// All the way round, and again.
Task<int> around(int left) {
  if (left == 0) co_return 0;
  co_return 1 + co_await rpc().call<&around>(next(), left - 1);
}
TEST(RpcRanks, tasks_call_tasks) {
  EXPECT_EQ(result(rpc().call<&around>(next(), 60)), 60);
  meet();
}

std::vector<std::uint32_t> g_came[8];
void take(Caller caller, std::uint32_t number) { g_came[caller.rank.value].push_back(number); }
/// A target that is slow at first: it makes no progress, while its callers go on.
TEST(RpcRanks, a_flood_to_a_busy_target_stays_bounded_and_arrives_in_order) {
  constexpr std::uint32_t kCalls = 100'000;
  for (auto& came : g_came) came.clear();
  meet();
  if (self() != 0) {
    std::uint32_t refused = 0;
    for (std::uint32_t number = 0; number < kCalls;) {
      const Status status = rpc().tell<&take>(Rank{0}, number);
      if (status == Status::ok) {
        ++number;
        continue;
      }
      ASSERT_EQ(status, Status::limit_reached);
      ++refused;
      job().worker().progress();
    }
  } else {
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(50)) {
    }
    ASSERT_EQ(job().worker().wait_until(
                  [] {
                    for (int rank = 1; rank < job().size(); ++rank) {
                      if (g_came[rank].size() < kCalls) return false;
                    }
                    return true;
                  },
                  kPatience),
              Status::ok);
    for (int rank = 1; rank < job().size(); ++rank) {
      for (std::uint32_t number = 0; number < kCalls; ++number) ASSERT_EQ(g_came[rank][number], number);
    }
  }
  meet();
}

std::uint32_t bounce(Caller caller, std::uint32_t number, int left) {
  if (left > 0) static_cast<void>(rpc().try_call<&bounce>(caller.rank, number, left - 1));  // refused now and then
  return number;
}
TEST(RpcRanks, ranks_flood_each_other_with_calls_that_call_back) {
  const std::uint32_t calls = test::kSanitized ? 10'000 : 50'000;
  std::vector<Future<std::uint32_t>> answers;
  answers.reserve(calls);
  while (answers.size() < calls) {
    try {
      answers.push_back(rpc().call<&bounce>(next(), static_cast<std::uint32_t>(answers.size()), 2));
    } catch (const Error& error) {
      ASSERT_EQ(error.status(), Status::limit_reached);
      job().worker().progress();
    }
  }
  for (std::uint32_t i = 0; i < calls; ++i) {
    ASSERT_EQ(job().worker().wait_until([&] { return answers[i].ready(); }, kPatience), Status::ok) << i;
    ASSERT_EQ(answers[i].get(), i);
  }
  meet();
}

double sum_of(Caller caller, DeviceData data, HostData<double> more) {
  std::vector<double> values(data.bytes() / sizeof(double));
  if (!values.empty()) caller.runtime.copy(Buffer(values.data(), data.bytes()), data);
  const std::span<const double> items = more.items();
  return std::accumulate(values.begin(), values.end(), 0.0) - std::accumulate(items.begin(), items.end(), 0.0);
}
/// Of device memory, where this process has a device, and of host memory.
TEST(RpcRanks, data_goes_beside_the_message) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{5000}, std::size_t{1'000'000}}) {
    std::vector<double> values(count);
    std::iota(values.begin(), values.end(), 1.0);
    const Memory field = job().allocate(job().device_kind(), count * sizeof(double));
    job().copy(field, ConstBuffer(values.data(), count * sizeof(double)));
    values.back() -= 2;
    std::vector<Future<ConstBuffer>> free;
    for (int rank = 0; rank < job().size(); ++rank) {
      for (int i = 0; i < 5; ++i) {
        Promise<ConstBuffer> first, second;
        free.push_back(first.future());
        free.push_back(second.future());
        EXPECT_EQ(result(rpc().call<&sum_of>(Rank{rank}, device(field, std::move(first)),
                                             no_copy(std::span<const double>(values), std::move(second)))),
                  2.0);
      }
    }
    for (Future<ConstBuffer>& each : free) static_cast<void>(job().wait(each));
  }
  meet();
}

TEST(RpcRanks, a_function_counts_on_every_rank) {
  static int count;
  count = 0;
  meet();
  for (int i = 0; i < 1000; ++i) {
    for (int rank = 0; rank < job().size(); ++rank) {
      ASSERT_EQ(rpc().tell<[] { ++count; }>(Rank{rank}), Status::ok);
    }
  }
  EXPECT_EQ(job().worker().wait_until([] { return count == 1000 * job().size(); }, kPatience), Status::ok);
  meet();
}

}  // namespace
}  // namespace brant
