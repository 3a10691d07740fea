// A member of a window dies by SIGKILL while kernels of the others, which are threads of the CPU here and hosts of
// their own, wait for a flag that it would have set. They come to an end, and the program learns who is lost.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/coll/collectives.h"
#include "brant/coll/team.h"
#include "brant/pgas.h"
#include "brant/pgas/device_window.cuh"
#include "support/killed_process.h"
#include "support/own_host.h"

namespace brant {
namespace {

using notify::KernelControl;
using notify::Waited;
using test::fail;

int play(const std::string& name) {
  if (name != "waits" || !test::become_own_host()) return 2;
  constexpr std::size_t kBytes = 4096;
  Runtime runtime;
  Team team = Team::world(runtime);
  GlobalSpace space(runtime);
  const int self = runtime.rank().value;
  GlobalSegment segment = space.create(MemoryKind::pinned, kBytes);
  std::memset(segment.memory().data, 0, kBytes);
  const GlobalPtr<std::byte> mine = segment.begin();
  std::vector<GlobalPtr<std::byte>> places(static_cast<std::size_t>(runtime.size()));
  team.run(allgather(ConstBuffer(&mine, sizeof(mine), MemoryKind::host), Buffer(std::span(places)))).or_throw("places");
  for (const auto place : places) runtime.wait_for(std::chrono::seconds(20), space.reach(place)).or_throw("reach");
  const pgas::DeviceWindow window = space.window(places, kBytes);
  if (window.ring.host == nullptr) fail(self, "all members are mapped");
  team.run(barrier()).or_throw("barrier");
  if (self == 1) {
    static_cast<void>(runtime.worker().wait_until([] { return false; }, std::chrono::milliseconds(100)));
    test::die();
  }
  std::atomic<bool> ended = false;
  Waited waited = Waited::rung;
  std::thread kernel([&] {
    simt::CpuThread machine([](void* pointer) noexcept { return pointer; });
    waited = pgas::wait(machine, KernelControl{}, window, 0, 1);
    ended = true;
  });
  if (runtime.worker().wait_until([&] { return ended.load(); }, std::chrono::seconds(30)) != Status::ok)
    fail(self, "the kernel hangs");
  kernel.join();
  if (waited != Waited::aborted) fail(self, "the kernel saw a flag that nobody set");
  Rank lost{-1};
  if (space.status_of(window, &lost) != Status::peer_lost || lost != Rank{1}) fail(self, "the lost one is not named");
  // Until the other survivor has seen the same: the end of this process would be another one.
  std::uint64_t mine_is_done = 1, its_is_done = 0;
  Channel farewell = Channel::open(runtime, Rank{2 - self}, ChannelId{9});
  Operation sent = farewell.send(ConstBuffer(&mine_is_done, sizeof(mine_is_done), MemoryKind::host));
  Operation received = farewell.recv(Buffer(&its_is_done, sizeof(its_is_done), MemoryKind::host));
  static_cast<void>(
      runtime.worker().wait_until([&] { return sent.done() && received.done(); }, std::chrono::seconds(20)));
  std::printf("survived\n");
  std::fflush(stdout);
  return 0;
}

TEST(WindowDeath, ends_kernels_that_wait_and_names_who_is_lost) {
  if (!test::own_hosts_allowed()) GTEST_SKIP() << "this machine gives processes no shared memory of their own";
  test::expect_survivors("waits");
}

/// The child processes of the test play their scene before any test runs.
const testing::Environment* const g_environment = testing::AddGlobalTestEnvironment(new test::SceneEnvironment(play));

}  // namespace
}  // namespace brant
