// A member of a team dies, stops, does not come, or calls something else. All others get an error in time, which says
// who it was and what it did; their processes go on, and what is left makes a new team.
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/coll/team.h"
#include "brant/core/stream_done.h"
#include "brant/device.h"
#include "support/killed_process.h"
#include "support/own_host.h"
#include "support/shared_host.h"

namespace brant {
namespace {

using test::fail;

/// Over the board; with buffers that others read where they are; by messages; each process a host; two of three on one.
constexpr const char* kWays[] = {"board", "reads", "messages", "hosts", "pair"};

/// A vector of floats, in memory that others can map or not.
class Data {
 public:
  Data(Runtime& runtime, std::size_t count) : count_(count) {
    if (g_mappable) {
      mapped_ = runtime.allocate(MemoryKind::host, count * sizeof(float));
    } else {
      private_.resize(count);
    }
  }
  [[nodiscard]] Collective sum() {
    const Buffer all(g_mappable ? mapped_.data() : private_.data(), count_ * sizeof(float), MemoryKind::host);
    return allreduce(all, DataType::f32, ReduceOp::sum);
  }
  static inline bool g_mappable = false;

 private:
  std::size_t count_;
  Memory mapped_;
  std::vector<float> private_;
};

void say(int rank, const Team& team, const char* what) {
  std::fprintf(stderr, "rank %d: %s: %s\n", rank, what, team.fault().c_str());
  fail(rank, what);
}

Collective sum_of(std::vector<float>& data) {
  return allreduce(Buffer(data.data(), data.size() * sizeof(float), MemoryKind::host), DataType::f32, ReduceOp::sum);
}

/// What is left is a team as good as any.
void go_on(Runtime& runtime, const Team& team) {
  Team rest = team.shrink();
  if (rest.size() != 2) fail(runtime.rank().value, "the survivors are not two");
  std::int32_t own = runtime.rank().value, sum = -1;
  const OpResult result =
      rest.run(allreduce(std::span<const std::int32_t>(&own, 1), std::span(&sum, 1), ReduceOp::sum));
  if (!result.ok() || sum != 2) say(own, rest, "the survivors do not go on");
  if (!rest.run(barrier()).ok()) fail(own, "the survivors do not meet");
}

constexpr auto kPatience = std::chrono::seconds(20);

/// The end should have been told: long after the death where one dies, before which calls take what they take.
bool is_overdue(std::chrono::steady_clock::time_point begin, Status expected) {
  if (std::chrono::steady_clock::now() - begin < kPatience) return false;
  const auto dead = test::since_death();
  const bool lives = dead == std::chrono::steady_clock::duration::max();
  return expected != Status::peer_lost || (!lives && dead > kPatience);
}

/// Calls until one fails, with the outcome that is expected, and a text that names the culprit.
void expect_end(Runtime& runtime, Team& team, std::size_t count, Status expected) {
  const int self = runtime.rank().value;
  Data data(runtime, count);
  const auto begin = std::chrono::steady_clock::now();
  OpResult result;
  for (int i = 0; result.ok(); ++i) {
    if (i % 2 == 0) {
      result = team.run(data.sum());
    } else {
      Operation operation = team.start(data.sum());
      result = runtime.wait_for(kPatience, operation);
    }
    if (is_overdue(begin, expected)) fail(self, "nothing was told");
  }
  if (result.status != expected) say(self, team, std::string(status_name(result.status)).c_str());
  if (team.fault().find("member 1 (rank 1 of the job)") == std::string::npos) say(self, team, "the text names nobody");
  if (team.run(barrier()).status != expected) say(self, team, "a later call is not refused alike");
  const bool between_calls = team.fault().find("between calls") != std::string::npos;
  const Status last = team.journal().back().status;
  // The call that the text names may have ended well here before the member that was in it found the loss.
  const bool was_done_here = last == Status::ok && team.fault().find("found by member") != std::string::npos;
  if (!between_calls && !was_done_here && last != expected) say(self, team, "the journal does not have it");
}

int play_death(Runtime& runtime, Team& team, std::size_t count) {
  Data data(runtime, count);
  if (runtime.rank().value == 1) {
    const int calls = count > 1000 ? 6 : 30;  // large ones take a second each where sanitized processes share a core
    for (int i = 0; i < calls; ++i) static_cast<void>(team.run(data.sum()));
    test::die();
  }
  const auto say_when = [](const char* what) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(test::since_death()).count();
    std::printf("%s %lld ms after the death\n", what, static_cast<long long>(ms));
  };
  expect_end(runtime, team, count, Status::peer_lost);
  test::say_if_late();
  say_when("told");
  go_on(runtime, team);
  say_when("went on");
  return 0;
}

/// Rank 1 dies in the midst of its calls: a thread of its own ends the process so long after they began.
int play_death_at(Runtime& runtime, Team& team, std::chrono::microseconds moment) {
  constexpr std::size_t kCount = 300'000;
  Data data(runtime, kCount);
  if (runtime.rank().value == 1) {
    for (int i = 0; i < 3; ++i) static_cast<void>(team.run(data.sum()));
    std::thread end([moment] {
      const auto until = std::chrono::steady_clock::now() + moment;
      while (std::chrono::steady_clock::now() < until) continue;
      test::die();
    });
    for (;;) static_cast<void>(team.run(data.sum()));
  }
  expect_end(runtime, team, kCount, Status::peer_lost);
  test::say_if_late();
  go_on(runtime, team);
  return 0;
}

/// Rank 1 is there and does not call, or is stopped; when it comes at last, it hears that nobody waits any more.
int play_silence(Runtime& runtime, Team& team, bool stopped) {
  const int self = runtime.rank().value;
  std::vector<pid_t> pids(3);
  const pid_t own = ::getpid();
  if (!team.run(allgather(ConstBuffer(&own, sizeof(own)), Buffer(pids.data(), 3 * sizeof(own)))).ok())
    fail(self, "the start");
  std::vector<float> data(4);
  if (self == 1) {
    if (stopped) ::raise(SIGSTOP);
    static_cast<void>(runtime.worker().wait_until([&] { return !team.fault().empty(); }, std::chrono::seconds(20)));
    const OpResult late = team.run(sum_of(data));
    if (late.status != Status::timed_out) say(self, team, "the late one is not told");
    if (team.fault().find("found by member") == std::string::npos) say(self, team, "it is not said who gave up");
    return 0;
  }
  expect_end(runtime, team, 4, Status::timed_out);
  if (team.fault().find("did not come") == std::string::npos) say(self, team, "the text does not say that it is late");
  if (stopped && self == 0) ::kill(pids[1], SIGCONT);
  return 0;
}

/// Rank 1 calls something else than the others, after some calls that all make.
int play_other_call(Runtime& runtime, Team& team, const std::string& what) {
  const int self = runtime.rank().value;
  std::vector<float> data(64), more(65);
  for (int i = 0; i < 5; ++i) {
    if (!team.run(sum_of(data)).ok()) say(self, team, "the first calls");
  }
  Collective call = sum_of(data);
  const Buffer bytes(data.data(), 64, MemoryKind::host);
  if (what == "root") call = broadcast(bytes, self == 1 ? 2 : 0);
  if (self == 1 && what == "size") call = sum_of(more);
  if (self == 1 && what == "type") call = allreduce(bytes, DataType::i32, ReduceOp::sum);
  if (self == 1 && what == "order") call = barrier();
  const std::int32_t beside[] = {0};
  std::vector<std::byte> theirs(64);
  if (self == 1 && what == "edges") {
    call = neighbour_allgather(ConstBuffer(data.data(), 64, MemoryKind::host),
                               Buffer(theirs.data(), 64, MemoryKind::host), {beside, beside});
  }
  // By messages the root of a broadcast has ended before it can hear: the next call tells it.
  OpResult result;
  for (int i = 0; i < 3 && result.ok(); ++i) result = team.run(i == 0 ? call : barrier());
  if (result.status != Status::invalid_argument) say(self, team, "the other call was not noticed");
  if (team.fault().find(" called ") == std::string::npos) say(self, team, "the text does not say what was called");
  // Nothing hangs, and another team of the same processes is not concerned.
  Team again = Team::world(runtime);
  if (!again.run(barrier()).ok()) fail(self, "no new team");
  return 0;
}

/// Calls of the host on memory of the device, whose copies may be under way when rank 1 dies.
int play_staged_death(Runtime& runtime) {
  const int self = runtime.rank().value;
  Team team = Team::world(runtime);
  constexpr std::size_t kCount = 200'000;
  Memory data = runtime.allocate(runtime.device_kind(), kCount * sizeof(float));
  const std::vector<float> zeros(kCount);
  runtime.copy(data, ConstBuffer(zeros.data(), kCount * sizeof(float), MemoryKind::host));
  const Collective sum = allreduce(Buffer(data), DataType::f32, ReduceOp::sum);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  OpResult result;
  for (int i = 0; result.ok(); ++i) {
    if (self == 1 && i == 30) test::die();
    // Two are posted, so that the team may end between the copies of either.
    Operation first = team.start(sum);
    Operation second = team.start(sum);
    result = runtime.wait_for(std::chrono::seconds(20), first);
    if (const OpResult next = runtime.wait_for(std::chrono::seconds(20), second); result.ok()) result = next;
    if (std::chrono::steady_clock::now() > give_up) fail(self, "nothing was told");
  }
  test::say_if_late();
  if (result.status != Status::peer_lost) say(self, team, "the death is not told");
  if (team.run(sum).status != Status::peer_lost) say(self, team, "a later call is not refused alike");
  go_on(runtime, team);
  return 0;
}

/// The kernels of the others wait for rank 1: the CPU sleeps in the stream, or goes on with progress.
int play_on_streams(Runtime& runtime, const std::string& what) {
  const int self = runtime.rank().value;
  const bool dies = what == "streams_death";
  Team team = Team::world(runtime, {.patience = std::chrono::milliseconds(dies ? 30'000 : 700)});
  if (const OpResult prepared = team.prepare_streams(); !prepared.ok()) say(self, team, "streams are not prepared");
  Stream stream = runtime.device().create_stream();
  Memory data = runtime.allocate(runtime.device_kind(), 100'000);
  const auto sum = [&](std::size_t bytes) {
    return team.enqueue(allreduce(Buffer(data.data(), bytes, data.kind()), DataType::f32, ReduceOp::sum), stream);
  };
  const bool other_call = what == "streams_size" || what == "streams_root" || what == "streams_order";
  const auto sixth = [&] {
    const Buffer all(data.data(), 100'000, data.kind());
    if (what == "streams_root") return team.enqueue(broadcast(all, self == 1 ? 2 : 0), stream);
    if (what == "streams_order" && self == 1) return team.enqueue(barrier(), stream);
    return sum(what == "streams_size" && self == 1 ? 64 : 100'000);
  };
  std::vector<pid_t> pids(3);
  const pid_t pid = ::getpid();
  if (!team.run(allgather(ConstBuffer(&pid, sizeof(pid)), Buffer(pids.data(), 3 * sizeof(pid)))).ok())
    fail(self, "the start");
  for (int i = 0; i < 5; ++i) {
    if (sum(100'000) != Status::ok) say(self, team, "the first calls");
  }
  if (stream.synchronize() != Status::ok || !team.fault().empty()) say(self, team, "the first calls end badly");
  if (self == 1 && dies) test::die();
  if (self == 1 && what == "streams_stopped") ::raise(SIGSTOP);
  if (self != 1 || other_call) {
    for (int i = 0; i < 3; ++i) {
      const Status queued = i == 0 ? sixth() : sum(i == 1 ? 64 : 100'000);
      if (queued != Status::ok && team.fault().empty()) say(self, team, "a call is refused");
    }
  }
  if (dies) {
    runtime.run([](Runtime& own, Stream& on) -> Task<void> { co_await stream_done(own, on); }(runtime, stream));
    test::say_if_late();
  } else if (stream.synchronize() != Status::ok) {
    fail(self, "the stream does not go on");
  }
  if (what == "streams_stopped" && self == 0) ::kill(pids[1], SIGCONT);
  if (self == 1 && !dies) {
    // It is told.
    if (runtime.worker().wait_until([&] { return !team.fault().empty(); }, std::chrono::seconds(20)) != Status::ok)
      fail(self, "nothing was told");
    return 0;
  }
  const std::string text = team.fault();
  if (text.find("member 1 (rank 1 of the job)") == std::string::npos && !other_call)
    say(self, team, "the text names nobody");
  if (!dies && text.find("in call 6 on streams") == std::string::npos) say(self, team, "the text names no call");
  const Status expected = dies ? Status::peer_lost : (other_call ? Status::invalid_argument : Status::timed_out);
  if (sum(64) != expected || team.run(barrier()).status != expected) say(self, team, "later calls are not refused");
  if (dies) {
    go_on(runtime, team);
    Team rest = team.shrink();
    if (!rest.prepare_streams().ok()) fail(self, "the survivors have no streams");
    if (rest.enqueue(allreduce(Buffer(data), DataType::f32, ReduceOp::sum), stream) != Status::ok)
      fail(self, "the survivors do not go on");
    if (stream.synchronize() != Status::ok || !rest.fault().empty()) say(self, rest, "the survivors do not go on");
  }
  return 0;
}

int play(const std::string& scene) {
  if (scene.starts_with("streams") || scene.starts_with("device")) {
    ::setenv("BRANT_GPU", "emulated", 1);
    Runtime runtime;
    const int code = scene == "device_death" ? play_staged_death(runtime) : play_on_streams(runtime, scene);
    if (code == 0) std::printf("survived\n");
    return code;
  }
  const std::string way = scene.substr(scene.find('.') + 1), what = scene.substr(0, scene.find('.'));
  if (way == "hosts" && !test::become_own_host()) return 2;
  test::SharedHost shared;
  if (way == "pair" && !shared.join(2)) return 2;
  Data::g_mappable = way == "reads";
  Runtime runtime;
  const bool silence = what == "silent" || what == "stopped";
  Team team = Team::world(runtime, {.patience = std::chrono::milliseconds(silence ? 500 : 30'000),
                                    .way = way == "messages" ? TeamWay::messages : TeamWay::automatic});
  int code = 2;
  if (what == "death_small") code = play_death(runtime, team, 4);
  if (what == "death_large") code = play_death(runtime, team, 1'000'000);
  if (what.starts_with("step_"))
    code = play_death_at(runtime, team, std::chrono::microseconds(std::stoi(what.substr(5))));
  if (silence) code = play_silence(runtime, team, what == "stopped");
  if (what == "root" || what == "size" || what == "type" || what == "order" || what == "edges")
    code = play_other_call(runtime, team, what);
  if (code == 0) std::printf("survived\n");
  return code;
}

class CollFault : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] std::string scene(const char* what) const { return std::string(what) + "." + GetParam(); }
  static void expect_all(const std::string& scene) {
    const auto [text, code] = test::play_scene(scene, 3);
    EXPECT_EQ(code, 0) << text;
    for (const char* rank : {"[0] survived", "[1] survived", "[2] survived"})
      EXPECT_NE(text.find(rank), std::string::npos) << text;
  }
  void SetUp() override {
    const std::string way = GetParam();
    if ((way == "hosts" || way == "pair") && !test::own_hosts_allowed())
      GTEST_SKIP() << "this machine allows no hosts of one's own (unshare)";
  }
};

TEST_P(CollFault, the_death_of_a_member_is_told_and_the_others_go_on) {
  for (const char* what : {"death_small", "death_large"}) test::expect_survivors(scene(what));
}
TEST_P(CollFault, a_member_that_does_not_come_is_named) { expect_all(scene("silent")); }
TEST_P(CollFault, a_stopped_member_is_named) { expect_all(scene("stopped")); }
TEST_P(CollFault, another_call_is_an_error_at_all) {
  for (const char* what : {"size", "type", "order", "root", "edges"}) expect_all(scene(what));
}

TEST(CollFaultOnStreams, the_death_of_a_member_ends_the_kernels_that_wait_for_it) {
  test::expect_survivors("streams_death");
}
TEST(CollFaultOnDevices, a_death_amid_copies_of_the_device_is_told) { test::expect_survivors("device_death"); }
TEST(CollFaultOnStreams, a_member_that_does_not_come_is_named) {
  const auto [text, code] = test::play_scene("streams_silent", 3);
  EXPECT_EQ(code, 0) << text;
}
TEST(CollFaultOnStreams, a_stopped_member_is_named) {
  const auto [text, code] = test::play_scene("streams_stopped", 3);
  EXPECT_EQ(code, 0) << text;
}
TEST(CollFaultOnStreams, another_call_is_an_error_at_all) {
  for (const char* what : {"streams_size", "streams_root", "streams_order"}) {
    const auto [text, code] = test::play_scene(what, 3);
    EXPECT_EQ(code, 0) << what << ": " << text;
  }
}
/// Wherever in its turns a member dies: a moment later each time.
TEST_P(CollFault, a_death_at_any_step_of_a_call_is_told) {
  for (const char* moment : {"20", "350"}) test::expect_survivors(scene(("step_" + std::string(moment)).c_str()));
}

INSTANTIATE_TEST_SUITE_P(Ways, CollFault, testing::ValuesIn(kWays), [](const auto& way) { return way.param; });

/// The child processes of the test play their scene before any test runs.
const testing::Environment* const g_environment = testing::AddGlobalTestEnvironment(new test::SceneEnvironment(play));

}  // namespace
}  // namespace brant
