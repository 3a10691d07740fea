// A process that others call dies by SIGKILL. Whoever waits for its answers must learn of it within a second; the
// survivors go on calling each other.
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/ops/rpc.h"
#include "ops/rpc/service.h"
#include "support/killed_process.h"

namespace brant {
namespace {

using test::fail;

constexpr auto kPatience = std::chrono::seconds(10);

int g_asked = 0;
/// Answers never.
Task<int> think() {
  ++g_asked;
  Promise<void> never;
  co_await never.future();
  co_return 1;
}
void hear(std::uint64_t) {}
int add(int left, int right) { return left + right; }
bool g_over = false;

void expect_lost(Runtime& runtime, Future<int>& answer) {
  const int self = runtime.rank().value;
  if (runtime.worker().wait_until([&] { return answer.ready(); }, kPatience) != Status::ok) fail(self, "a call hangs");
  try {
    static_cast<void>(answer.get());
    fail(self, "a dead process has answered");
  } catch (const Error& error) {
    if (error.status() != Status::peer_lost) fail(self, error.what());
  }
}

/// The dying one thinks about calls of both others, and dies once it has been asked.
void wait_for_answers(Runtime& runtime, const Rpc& rpc) {
  const int self = runtime.rank().value;
  if (self == 1) {
    static_cast<void>(runtime.worker().wait_until([] { return g_asked >= 2; }, kPatience));
    test::die();
  }
  std::vector<Future<int>> answers;
  answers.reserve(100);
  for (int i = 0; i < 100; ++i) answers.push_back(rpc.call<&think>(Rank{1}));
  for (Future<int>& answer : answers) expect_lost(runtime, answer);
}

/// It dies in a flood.
void flood(Runtime& runtime, const Rpc& rpc) {
  const int self = runtime.rank().value;
  if (self == 1) {
    static_cast<void>(runtime.worker().wait_until([] { return false; }, std::chrono::milliseconds(100)));
    test::die();
  }
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::vector<Future<int>> answers;
  for (std::uint64_t i = 0;; ++i) {
    const Status status = rpc.tell<&hear>(Rank{1}, i);
    if (status == Status::peer_lost) break;
    if (status != Status::ok && status != Status::limit_reached) fail(self, "a tell failed for another reason");
    if (status == Status::ok && i % 1000 == 0) {
      if (Result<Future<int>> answer = rpc.try_call<&add>(Rank{1}, 1, 2)) answers.push_back(std::move(answer).value());
    }
    if (status != Status::ok || i % 100 == 0) runtime.worker().progress();
    if (std::chrono::steady_clock::now() > give_up) fail(self, "the death was never told");
  }
  for (Future<int>& answer : answers) {
    if (runtime.worker().wait_until([&] { return answer.ready(); }, kPatience) != Status::ok)
      fail(self, "a call of the flood hangs");
  }
}

int play(const std::string& name) {
  Runtime runtime;
  const Rpc rpc(runtime);
  const int self = runtime.rank().value;
  name == "flood" ? flood(runtime, rpc) : wait_for_answers(runtime, rpc);
  test::say_if_late();
  if (rpc.tell<&hear>(Rank{1}, std::uint64_t{1}) != Status::peer_lost) fail(self, "a later tell was accepted");
  Future<int> late = rpc.call<&add>(Rank{1}, 1, 2);
  expect_lost(runtime, late);
  if (rpc.service().answers().count() != 0) fail(self, "calls are waited for after the death");
  // Life goes on with the other survivor.
  Future<int> sum = rpc.call<&add>(Rank{2 - self}, 40, 2);
  if (runtime.wait(sum) != 42) fail(self, "the survivors lost each other");
  Future<void> over = rpc.call<[] { g_over = true; }>(Rank{2 - self});
  runtime.wait(over);
  static_cast<void>(runtime.worker().wait_until([] { return g_over; }, kPatience));
  std::printf("survived\n");
  return 0;
}

TEST(RpcDeath, whoever_waits_for_an_answer_is_told) { test::expect_survivors("answers"); }
TEST(RpcDeath, whoever_floods_it_is_told) { test::expect_survivors("flood"); }

/// The child processes of the test play their scene before any test runs.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): without it there is no test
const testing::Environment* const g_environment = testing::AddGlobalTestEnvironment(new test::SceneEnvironment(play));

}  // namespace
}  // namespace brant
