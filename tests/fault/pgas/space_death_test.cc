// A process dies by SIGKILL while others reach for its part of the global space: before they have reached it, in the
// middle of puts, gets, atomics and fences, and as source or target of a copy between two others. Whoever uses its
// memory hears of it within a second and not before it has died, and goes on with those that live.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/coll/collectives.h"
#include "brant/coll/team.h"
#include "brant/pgas.h"
#include "support/killed_process.h"
#include "support/outcome_in_time.h"
#include "support/own_host.h"

namespace brant {
namespace {

using namespace std::chrono_literals;
using test::fail;

constexpr std::size_t kBytes = 256 * 1024;
/// The last word of each segment, by which survivors tell each other that they go on.
constexpr std::size_t kFarewell = kBytes - sizeof(std::uint64_t);

/// One of three processes with a segment each.
class Player {
 public:
  Player() {
    const GlobalPtr<std::byte> mine = segment_.begin();
    team_.run(allgather(ConstBuffer(&mine, sizeof(mine), MemoryKind::host), Buffer(std::span(places_))))
        .or_throw("places");
  }

  [[nodiscard]] int self() const { return runtime_.rank().value; }

  /// It answers nobody any more, and dies.
  [[noreturn]] void die_in_silence() {
    meet();
    std::this_thread::sleep_for(100ms);
    test::die();
  }
  /// While the others use what it has.
  [[noreturn]] void die_at_work() {
    for (const auto place : places_) expect(Status::ok, space_.reach(place), "a segment is not reached");
    meet();
    static_cast<void>(runtime_.worker().wait_until([] { return false; }, 100ms));
    test::die();
  }
  /// As a survivor: reaches for the one who dies, over and over, until that is told as lost.
  void lose(const std::string& what) {
    if (what != "ticket") {
      for (const auto place : places_) expect(Status::ok, space_.reach(place), "a segment is not reached");
    }
    meet();
    const bool between_others = what == "source" || what == "target" || what == "columnsource";
    const std::string mine = between_others && self() == 2 ? "put" : what;  // who is only an end sees to itself
    Status status = Status::ok;
    for (const auto until = Clock::now() + 20s; status == Status::ok && Clock::now() < until;) {
      static_cast<void>(runtime_.worker().progress());  // what is done at once makes none
      status = once(mine);
    }
    if (status != Status::peer_lost)
      fail(self(), status == Status::ok ? "the death goes unnoticed" : status_name(status).data());
    test::say_if_late();
    if (once(mine) != Status::peer_lost) fail(self(), "a later use does not say so");
  }
  /// The two survivors put, get and fence with one another.
  void go_on() {
    const int other = 2 - self();
    const auto there = places_[static_cast<std::size_t>(other)] + kFarewell;
    const std::uint64_t word = 42;
    expect(Status::ok, space_.put(there, std::as_bytes(std::span(&word, 1))), "a put to the other survivor");
    expect(Status::ok, fence(other), "a fence with the other survivor");
    const auto* const told =
        reinterpret_cast<std::uint64_t*>(static_cast<std::byte*>(segment_.memory().data) + kFarewell);
    auto has_come = [&] { return std::atomic_ref(*const_cast<std::uint64_t*>(told)).load() == word; };
    if (runtime_.worker().wait_until(has_come, 20s) != Status::ok) fail(self(), "the other survivor does not go on");
    std::printf("survived\n");
    std::fflush(stdout);
    static_cast<void>(runtime_.worker().wait_until([] { return false; }, 200ms));  // what the other one posts arrives
  }

 private:
  using Clock = std::chrono::steady_clock;

  void meet() { team_.run(barrier()).or_throw("barrier"); }
  void expect(Status wanted, const Operation& operation, const char* what) {
    if (test::outcome_in_time(runtime_, operation) != wanted) fail(self(), what);
  }
  Operation fence(int rank) {
    return Operation(Moment::delivered, [&](Op& op) noexcept { return space_.post_fence(Rank{rank}, op); });
  }
  Status once(const std::string& what) {
    std::vector<std::byte>& bytes = bytes_;
    const auto doomed = places_[1], beside = places_[2];
    const auto end = [&](const Operation& operation) { return test::outcome_in_time(runtime_, operation); };
    if (what == "ticket") return end(space_.reach(doomed));
    if (what == "put") return end(space_.put(doomed, std::span<const std::byte>(bytes)));
    if (what == "get") return end(space_.get(doomed, std::span<std::byte>(bytes)));
    if (what == "atomic") return end(space_.atomic(doomed.as<std::uint64_t>(), AtomicOp::add, 1));
    if (what == "fence") {
      static_cast<void>(end(space_.put(doomed, std::span<const std::byte>(bytes))));
      return end(fence(1));
    }
    // Columns: many short runs.
    CopyOptions shaped;
    shaped.shapes = &shapes_;
    if (what == "column") return end(space_.put(doomed, ConstBuffer(bytes.data(), bytes.size()), std::move(shaped)));
    if (what == "columnsource") return end(space_.copy(doomed, beside, bytes.size(), std::move(shaped)));
    if (what == "source") return end(space_.copy(doomed, beside, bytes.size()));
    return end(space_.copy(beside, doomed, bytes.size()));
  }

  Runtime runtime_;
  Team team_ = Team::world(runtime_);
  GlobalSpace space_{runtime_};
  GlobalSegment segment_ = space_.create(MemoryKind::host, kBytes);
  std::vector<GlobalPtr<std::byte>> places_ = std::vector<GlobalPtr<std::byte>>(3);
  std::vector<std::byte> bytes_ = std::vector<std::byte>(100'000);
  const ShapeDim rows_{.count = 2000, .stride = 50};
  const TransferShapes shapes_{*Shape::strided(8, 16, {&rows_, 1}), *Shape::strided(0, 16, {&rows_, 1})};
};

/// "put", or "put_far" with each process on a host of its own.
int play(const std::string& name) {
  const std::string what = name.substr(0, name.find('_'));
  if (what != name && !test::become_own_host()) return 2;
  Player player;
  if (player.self() == 1 && what == "ticket") player.die_in_silence();
  if (player.self() == 1) player.die_at_work();
  player.lose(what);
  player.go_on();
  return 0;
}

class SpaceDeath : public testing::TestWithParam<std::string> {};

TEST_P(SpaceDeath, is_told_to_whoever_reaches_for_the_memory_of_the_dead) {
  const bool far = GetParam().find("_far") != std::string::npos;
  if (far && !test::own_hosts_allowed()) GTEST_SKIP() << "this machine gives processes no shared memory of their own";
  test::expect_survivors(GetParam());
}
INSTANTIATE_TEST_SUITE_P(Scenes, SpaceDeath,
                         testing::Values("ticket", "put", "get", "atomic", "fence", "source", "target", "column",
                                         "ticket_far", "column_far", "columnsource_far", "put_far", "get_far",
                                         "fence_far", "source_far", "target_far"),
                         [](const auto& scene) { return scene.param; });

/// The child processes of the test play their scene before any test runs.
const testing::Environment* const g_environment = testing::AddGlobalTestEnvironment(new test::SceneEnvironment(play));

}  // namespace
}  // namespace brant
